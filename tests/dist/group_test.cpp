#include "lib/dist/group.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lib/core/clock.h"
#include "lib/core/process/time_ledger.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using testing::run_ranks;

constexpr auto kTimeout = 30s;

using dist::CpuExchange;
constexpr std::array kExchanges = {CpuExchange::kGloo, CpuExchange::kShm};

struct GroupCase {
  int ranks;
  CpuExchange exchange;
};
constexpr std::array kGroupCases = {
    GroupCase{2, CpuExchange::kGloo}, GroupCase{2, CpuExchange::kShm},
    GroupCase{4, CpuExchange::kGloo}, GroupCase{4, CpuExchange::kShm}};

dist::Group join(const core::WorkerEnv& env, CpuExchange exchange,
                 std::chrono::milliseconds timeout = kTimeout) {
  return {env, at::kCPU, timeout, core::Beat(), {}, exchange};
}

void check_all_said(const std::vector<testing::RankResult>& results, const std::string& text) {
  for (const auto& result : results) {
    CHECK(result.text == text);
    CHECK(result.status == 0);
  }
}

TEST_CASE("sums, maxima and broadcasts reach every rank") {
  for (const GroupCase& one : kGroupCases) {
    const auto results = run_ranks({.world_size = one.ranks}, [&](const core::WorkerEnv& env) {
      dist::Group group = join(env, one.exchange);
      const double mine = group.rank() + 1;
      at::Tensor sum = at::full({3}, mine), max = at::full({}, mine), sent = at::full({2}, mine);
      dist::Pending first = group.all_reduce_sum(sum, "sum");  // both under way together
      dist::Pending second = group.all_reduce_max(max, "max");
      second.wait();
      first.wait();
      group.broadcast(sent, group.world_size() - 1, "sent").wait();
      group.barrier("end");
      return fmt::format("{} {} {}", sum[2].item<float>(), max.item<float>(),
                         sent[1].item<float>());
    });
    CAPTURE(one.ranks);
    // 1 + 2 = 3; 1 + 2 + 3 + 4 = 10
    check_all_said(results, one.ranks == 2 ? "3 2 2" : "10 4 4");
  }
}

TEST_CASE("what each rank has is gathered on the root alone, in their order") {
  for (const int root : {0, 2}) {
    const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      dist::Group group = join(env, root == 0 ? CpuExchange::kGloo : CpuExchange::kShm);
      std::string text;
      for (const at::ScalarType type : {at::kFloat, at::kLong, at::kBool}) {
        const auto own = at::full({2, 2}, env.rank, type);
        for (const at::Tensor& one : group.gather(own, root, "own")) {
          text += fmt::format("{} ", one[1][1].item<double>());
        }
      }
      return text;
    });
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(results[rank].text == (rank == root ? "0 1 2 0 1 2 0 1 1 " : ""));
      CHECK(results[rank].status == 0);
    }
  }
}

TEST_CASE("a text of the root is the text of all, also an empty and a long one") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, kTimeout);
    const std::string own = env.rank == 1 ? "from one" : "another, longer text";
    const std::string empty = group.broadcast_text(env.rank == 0 ? "" : "x", 0, "empty");
    const std::string text = group.broadcast_text(own, 1, "text");
    const std::string big =
        group.broadcast_text(env.rank == 0 ? std::string(1 << 20, 'a') : "", 0, "big");
    return fmt::format("[{}] [{}] {}", empty, text, big.size());
  });
  check_all_said(results, "[] [from one] 1048576");
}

TEST_CASE("one rank opens nothing and every collective is the identity") {
  core::WorkerEnv env;  // no port: a store could not be reached
  dist::Group group(env, at::kCPU, kTimeout);
  const at::Tensor five = at::full({1}, 5.0);
  group.all_reduce_sum(five, "sum").wait();
  group.all_reduce_max(five, "max").wait();
  group.broadcast(five, 0, "five").wait();
  group.barrier("end");
  CHECK(five.item<float>() == 5);
  CHECK(group.broadcast_text("text", 0, "text") == "text");
  CHECK(group.gather(five, 0, "five").front().is_same(five));
  CHECK(!group.process_group());
}

TEST_CASE(
    "a rank waits for its peers without a limit where a launcher watches, else a quarter hour") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& given) {
    core::WorkerEnv env = given;
    const auto unwatched = dist::patience_for_peers(env);
    env.beat_fd = 0;  // some descriptor
    const auto patience = dist::patience_for_peers(env);
    dist::Group group(env, at::kCPU, patience);  // c10d's arithmetic takes it, too
    const at::Tensor sum = at::ones({1});
    group.all_reduce_sum(sum, "sum").wait();
    return fmt::format("{} {} {}", unwatched == 15min, patience > 500h, sum.item<float>());
  });
  check_all_said(results, "true true 2");
}

TEST_CASE("ranks that do not come are named, on every rank") {
  const auto results =
      run_ranks({.world_size = 4, .started = 2}, [](const core::WorkerEnv& env) -> std::string {
        dist::Group group(env, at::kCPU, 300ms);
        return "formed";
      });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(results[rank].text ==
          fmt::format(
              "rank {}: 2 of 4 ranks did not arrive within 0.3 s: 2, 3\n"
              "  look at the logs of the missing ranks, and check that every node was started "
              "with the same --nnodes, --master-addr and --master-port",
              rank));
    CHECK(results[rank].status == 75);
    CHECK(results[rank].seconds < 10);
  }
}

TEST_CASE("a store that does not answer is named") {
  const auto results =
      run_ranks({.world_size = 2, .started = 1}, [](const core::WorkerEnv& given) -> std::string {
        core::WorkerEnv env = given;
        close(*env.store_fd);  // nobody listens now
        env.rank = 1;
        env.store_fd.reset();
        try {
          dist::Group group(env, at::kCPU, 200ms);
        } catch (const core::StoppedError& error) {
          const std::string expected = fmt::format(
              "no answer from the store at 127.0.0.1:{} within 0.2 s (", env.master_port);
          return error.found().starts_with(expected) && error.place() == "rank 1" ? "named"
                                                                                  : error.what();
        }
        return "formed";
      });
  check_all_said(results, "named");
}

TEST_CASE("a port that another program has is a mistake of the command") {
  const auto results =
      run_ranks({.world_size = 2, .started = 1}, [](const core::WorkerEnv& given) -> std::string {
        core::WorkerEnv env = given;
        env.store_fd.reset();  // the listener of the test still holds the port
        dist::Group group(env, at::kCPU, 2s);
        return "formed";
      });
  CHECK(results[0].status == 2);
  CHECK(results[0].text.find("rank 0: cannot host the store on port ") == 0);
  CHECK(results[0].text.find("\n  choose a free port with --master-port") != std::string::npos);
}

TEST_CASE("rows go from each rank to each, as many as it says, and none where it has none") {
  for (const dist::CpuExchange exchange : {dist::CpuExchange::kShm, dist::CpuExchange::kGloo}) {
    CAPTURE(static_cast<int>(exchange));
    const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      dist::Group group(env, at::kCPU, kTimeout, core::Beat(), {}, exchange);
      // Rank r sends r rows to rank 0, of its number, none to rank 1 and one to rank 2.
      const at::Tensor sent = at::full({env.rank + 1, 2}, static_cast<float>(env.rank));
      const std::vector<std::int64_t> send{env.rank, 0, 1};
      const std::vector<std::vector<std::int64_t>> receive{{0, 1, 2}, {0, 0, 0}, {1, 1, 1}};
      const std::vector<std::vector<float>> expected{{1, 2, 2}, {}, {0, 1, 2}};
      const auto own = static_cast<std::size_t>(env.rank);
      std::string text;
      for (int turn = 0; turn < 2; ++turn) {
        const at::Tensor received = at::empty({static_cast<std::int64_t>(expected[own].size()), 2});
        group.all_to_all(received, sent, receive[own], send, "rows").wait();
        const at::Tensor rows = at::tensor(expected[own]).unsqueeze(1).expand({-1, 2});
        text += at::equal(received, rows) ? "right " : "wrong ";
      }
      group.end("end");
      return text;
    });
    check_all_said(results, "right right ");
  }
  dist::Group alone({}, at::kCPU, kTimeout);
  const at::Tensor received = at::zeros({2});
  alone.all_to_all(received, at::ones({2}), {2}, {2}, "rows").wait();
  CHECK(received.sum().item<float>() == 2);
}

TEST_CASE("a killed peer ends a collective on all others within seconds, by name") {
  for (const GroupCase& one : kGroupCases) {
    const auto results =
        run_ranks({.world_size = one.ranks}, [&](const core::WorkerEnv& env) -> std::string {
          dist::Group group = join(env, one.exchange);
          group.barrier("ready");
          if (env.rank == 1) raise(SIGKILL);
          try {
            const at::Tensor loss = at::ones({1 << 16});
            for (int step = 0; step < 2; ++step) group.all_reduce_sum(loss, "loss").wait();
          } catch (const core::StoppedError& error) {
            const std::string expected = fmt::format(
                "rank {}: collective \"loss\" was not completed: a peer was lost or the timeout "
                "expired (",
                env.rank);
            return std::string(error.what()).starts_with(expected) ? "stopped" : error.what();
          }
          return "completed";
        });
    CAPTURE(one.ranks);
    for (int rank = 0; rank < one.ranks; ++rank) {
      CHECK(results[rank].text == (rank == 1 ? "" : "stopped"));
      CHECK(results[rank].status == (rank == 1 ? 128 + SIGKILL : 0));
      CHECK(results[rank].seconds < 10);
    }
  }
}

TEST_CASE("a peer that does nothing ends a collective when time is up") {
  for (const CpuExchange exchange : kExchanges) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const auto results =
        run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
          dist::Group group = join(env, exchange, 1s);
          if (env.rank == 1) {
            char byte = 0;
            return read(ends[0], &byte, 1) == 1 ? "idle" : "?";  // until rank 0 has given up
          }
          try {
            group.barrier("validation");
          } catch (const core::StoppedError& error) {
            const bool named = error.found().starts_with(
                "collective \"validation\" was not completed: a peer was lost or the timeout "
                "expired (");
            if (write(ends[1], "x", 1) != 1) return "no pipe";
            return named ? "stopped" : error.what();
          }
          return "completed";
        });
    close(ends[0]);
    close(ends[1]);
    CHECK(results[0].text == "stopped");
    CHECK(results[1].text == "idle");
    CHECK(results[0].seconds < 10);
  }
}

TEST_CASE("the launcher sees collectives by their names; the ledger has the wait and no more") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    const core::Descriptor file = core::make_beat_file();
    core::Beat beat(file.get());
    dist::Group group(env, at::kCPU, kTimeout, beat);
    const core::BeatReader reader(file.get());
    beat.enter(core::Phase::kCompute);
    const at::Tensor one = at::ones({1});
    group.all_reduce_sum(one, "sum").wait();
    group.broadcast(one, 0, "sent").wait();
    (void)group.gather(one, 0, "own");
    core::TimeLedger ledger;
    const core::LedgerOfThread use(&ledger);
    ledger.leave(core::TimeRow::kForward);
    const core::SteadyTime before = core::now();
    group.barrier("last");
    const double barrier_s = core::seconds_since(before);
    const core::SteadyTime begin = core::now();
    while (core::seconds_since(begin) < 0.05) {
    }
    const core::RowSeconds rows = ledger.total();
    const double computed = rows[static_cast<std::size_t>(core::TimeRow::kForward)];
    const double waited = rows[static_cast<std::size_t>(core::TimeRow::kCommunication)];
    while (reader.state().phase == core::Phase::kCollective) std::this_thread::yield();
    const bool is_right = computed >= 0.05 && waited > 0 && waited <= barrier_s;
    std::string text = is_right ? "" : fmt::format("computed {}, waited {} s ", computed, waited);
    for (std::int64_t number = 1; number <= reader.state().collectives; ++number) {
      const auto seen = reader.collective(number);
      text += fmt::format("{} {}; ", seen->kind, seen->name);
    }
    group.end("end");
    return text;
  });
  check_all_said(results,
                 "connect connect; all-reduce sum; broadcast sent; gather own; all-reduce last; ");
}

// On a device a collective that was aborted leaves anything in the tensors that it was to write.
TEST_CASE("after a failed collective nothing is handed over, of earlier ones neither") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
    dist::Group group(env, at::kCPU, kTimeout);
    const at::Tensor one = at::ones({1});
    dist::Pending earlier = group.all_reduce_sum(one, "earlier");
    group.barrier("it is complete");
    if (env.rank == 1) return "gone";
    const dist::Pending lost = group.all_reduce_sum(at::ones({1}), "lost");
    const auto stopped = [](const auto& body) {
      try {
        body();
      } catch (const core::StoppedError&) {
        return true;
      }
      return false;
    };
    while (!stopped([&] { group.check(); })) std::this_thread::yield();
    return fmt::format("{} {}", stopped([&] { earlier.wait(); }),
                       stopped([&] { (void)group.to_host(one); }));
  });
  CHECK(results[0].text == "true true");
}

TEST_CASE("a stop that one rank reports reaches the others, which do not wait") {
  dist::Group alone({}, at::kCPU, kTimeout);
  CHECK_FALSE(alone.stop_was_heard(false));
  CHECK(alone.stop_was_heard(true));
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, kTimeout);
    const bool before = group.stop_was_heard(false);
    group.barrier("nobody has reported");
    const bool own = env.rank == 1 && group.stop_was_heard(true);
    group.barrier("rank 1 has");
    const bool after = group.stop_was_heard(false);
    group.end("end");
    return fmt::format("{} {} {}", before, own == (env.rank == 1), after);
  });
  check_all_said(results, "false true true");
}

TEST_CASE("a group of some ranks exchanges as the job's does and goes with its owner") {
  for (const CpuExchange exchange : kExchanges) {
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      dist::Group world = join(env, exchange);
      auto part = std::make_unique<dist::Group>(world, std::vector<int>{0, 1}, "part");
      const c10::intrusive_ptr<c10d::ProcessGroup> inner = part->process_group();
      const std::string names = world.exchange() + " " + part->exchange() + " " +
                                inner->getBackend(at::kCPU)->getBackendName();
      const bool is_default = inner->getDefaultBackend() == inner->getBackend(at::kCPU);
      part->end("end");
      part.reset();
      world.end("end");
      return fmt::format("{} {} {}", names, is_default, inner.use_count());
    });
    check_all_said(results,
                   exchange == CpuExchange::kGloo ? "gloo gloo gloo true 1" : "shm shm shm true 1");
  }
}

TEST_CASE("without a word the ranks of one host share memory") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    return dist::Group(env, at::kCPU, kTimeout).exchange();
  });
  check_all_said(results, "shm");
  CHECK(dist::Group({}, at::kCPU, kTimeout).exchange().empty());
}

TEST_CASE("rethrow_as_stopped lets an error that is not the network's go on as it is") {
  const auto thrown_by = [](const std::function<void()>& body) -> std::string {
    try {
      try {
        body();
      } catch (...) {
        dist::rethrow_as_stopped(3, "the gradients were");
      }
    } catch (const core::Error& error) {
      return fmt::format("core: {}", error.what());
    } catch (const std::exception& error) {
      return fmt::format("foreign: {}", error.what());
    }
    return "nothing";
  };
  CHECK(thrown_by([] { throw std::out_of_range("index 7"); }) == "foreign: index 7");
  CHECK(thrown_by([] { throw core::DivergedError("step 3", "loss is nan"); }) ==
        "core: step 3: loss is nan");
  CHECK(thrown_by([] {
          throw c10::DistNetworkError({"f", "f.cc", 1}, "reset");
        }) ==
        "core: rank 3: the gradients were not completed: a peer was lost or the timeout expired "
        "(reset)\n"
        "  the log of the rank that failed first has the cause; resume from the newest checkpoint");
}

}  // namespace
