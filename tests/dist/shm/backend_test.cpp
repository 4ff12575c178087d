#include "lib/dist/shm/backend.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/dist/group.h"
#include "lib/dist/shm/meeting.h"
#include "lib/dist/store.h"
#include "tests/dist/ranks.h"
#include "tests/dist/shm/ranks_support.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;
using Tensors = std::vector<at::Tensor>;

// Runs `body` on each rank's backend; returns what each threw.
std::vector<std::string> run_backends(int ranks, const std::function<void(ShmBackend&)>& body,
                                      std::chrono::milliseconds timeout = 30s) {
  auto arenas = testing::make_arenas({.ranks = ranks, .slots = 4, .slot_bytes = 1024});
  std::vector<std::string> said(arenas.size());
  std::vector<std::jthread> threads;
  threads.reserve(arenas.size());
  for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto backend = c10::make_intrusive<ShmBackend>(std::move(arenas[rank]), timeout);
      try {
        body(*backend);
      } catch (const c10::Error& error) {
        said[rank] = error.what_without_backtrace();
      } catch (const std::exception& error) {
        said[rank] = error.what();
      }
    });
  }
  threads.clear();
  return said;
}

const std::vector<std::string> kQuiet2(2), kQuiet3(3);

at::Tensor numbers(int rank, std::int64_t count) { return at::arange(count).add(100 * rank); }

TEST_CASE("a work's future holds the tensors that were given, as the Reducer reads them") {
  CHECK(run_backends(2, [](ShmBackend& backend) {
          Tensors data{at::full({5000}, backend.getRank() + 1.0)};
          const auto work = backend.allreduce(data, {});
          const auto future = work->getFuture();
          future->wait();
          const auto value = future->value();
          if (!value.isTensorList() || !value.toTensorVector().front().is_same(data.front())) {
            throw std::runtime_error("another tensor");
          }
          if (!data.front().eq(3).all().item<bool>()) throw std::runtime_error("another sum");
          work->wait();
          if (!work->isCompleted() || !work->isSuccess()) throw std::runtime_error("not done");
          if (!work->result().front().is_same(data.front())) throw std::runtime_error("result");
        }) == kQuiet2);
}

TEST_CASE("works are done in the order of the calls, whichever is waited for first") {
  CHECK(run_backends(3, [](ShmBackend& backend) {
          std::vector<Tensors> data;
          std::vector<c10::intrusive_ptr<c10d::Work>> works;
          for (int i = 0; i < 20; ++i) data.push_back({at::full({i * 100}, i)});
          for (Tensors& one : data) works.push_back(backend.allreduce(one, {}));
          const int first = backend.getRank() % 2 == 0 ? 19 : 0;
          works[static_cast<std::size_t>(first)]->wait();
          for (int i = 0; i < 20; ++i) {
            const auto at = static_cast<std::size_t>(i);
            works[at]->wait();
            if (!data[at].front().eq(3 * i).all().item<bool>()) throw std::runtime_error("sum");
          }
        }) == kQuiet3);
}

TEST_CASE("every collective of c10d that a program here calls") {
  CHECK(
      run_backends(3, [](ShmBackend& backend) {
        const int rank = backend.getRank();
        const auto expect = [](const at::Tensor& found, const at::Tensor& wanted,
                               const char* name) {
          if (!found.equal(wanted)) throw std::runtime_error(name);
        };
        const at::Tensor all = at::cat({numbers(0, 4), numbers(1, 4), numbers(2, 4)});
        at::Tensor own = numbers(rank, 4), flat = at::zeros({12}, at::kLong);
        backend._allgather_base(flat, own, {})->wait();
        expect(flat, all, "_allgather_base");

        std::vector<Tensors> lists{{at::zeros_like(own), at::zeros_like(own), at::zeros_like(own)}};
        Tensors owns{own};
        backend.allgather(lists, owns, {})->wait();
        expect(at::cat(lists[0]), all, "allgather");

        std::vector<Tensors> gathered;
        if (rank == 1) gathered = {{at::zeros_like(own), at::zeros_like(own), at::zeros_like(own)}};
        c10d::GatherOptions at_one;
        at_one.rootRank = 1;
        backend.gather(gathered, owns, at_one)->wait();
        if (rank == 1) expect(at::cat(gathered[0]), all, "gather");

        at::Tensor part = at::zeros({4}, at::kLong);
        at::Tensor whole = at::arange(12).add(rank);
        backend._reduce_scatter_base(part, whole, {})->wait();
        const at::Tensor wanted = at::arange(12).mul(3).add(3).narrow(0, 4 * rank, 4);
        expect(part, wanted, "_reduce_scatter_base");

        Tensors parts{at::zeros({4}, at::kLong)};
        std::vector<Tensors> inputs{
            {whole.narrow(0, 0, 4), whole.narrow(0, 4, 4), whole.narrow(0, 8, 4)}};
        backend.reduce_scatter(parts, inputs, {})->wait();
        expect(parts.front(), wanted, "reduce_scatter");

        Tensors sent{numbers(rank, 2)};
        c10d::BroadcastOptions from_two;
        from_two.rootRank = 2;
        backend.broadcast(sent, from_two)->wait();
        expect(sent.front(), numbers(2, 2), "broadcast");

        std::vector<std::int64_t> none;
        at::Tensor rows = at::arange(3).add(10 * rank).view({3, 1}), got = at::zeros_like(rows);
        backend.alltoall_base(got, rows, none, none, {})->wait();
        expect(got.view({3}), at::arange(3).mul(10).add(rank), "alltoall_base");

        // rank r sends r + 1 rows to rank 0, none to rank 1 and one to rank 2
        std::vector<std::int64_t> out{rank + 1, 0, 1}, in;
        if (rank == 0) in = {1, 2, 3};
        if (rank == 1) in = {0, 0, 0};
        if (rank == 2) in = {1, 1, 1};
        at::Tensor uneven = at::full({rank + 2, 2}, rank);
        at::Tensor received = at::full({in[0] + in[1] + in[2], 2}, -1, at::kLong);
        backend.alltoall_base(received, uneven, in, out, {})->wait();
        expect(received.sum(),
               at::full({},
                        rank == 0   ? 16
                        : rank == 2 ? 6
                                    : 0,
                        at::kLong),
               "uneven rows");  // 2 * (0 + 2 * 1 + 3 * 2); 2 * (0 + 1 + 2)
        if (out.size() != 3 || in.size() != 3) throw std::runtime_error("the sizes were taken");

        backend.barrier({})->wait();
      }) == kQuiet3);
}

TEST_CASE("what cannot be exchanged is refused at once, and the next call goes on") {
  CHECK(run_backends(2, [](ShmBackend& backend) {
          const auto refused = [](const auto& body) {
            try {
              body();
            } catch (const core::InternalError& error) {
              return error.found();
            }
            return std::string("taken");
          };
          Tensors holes{at::zeros({8}).slice(0, 0, 8, 2)}, two{at::zeros({1}), at::zeros({1})};
          Tensors complex{at::zeros({1}, at::kComplexFloat)};
          at::Tensor three = at::zeros({3}), one = at::zeros({1}),
                     long_one = at::zeros({2}, at::kLong);
          CHECK(refused([&] { backend.allreduce(holes, {}); }) ==
                "a tensor that is not dense, or not on the CPU");
          CHECK(refused([&] { backend.allreduce(two, {}); }) == "2 tensors in one call");
          CHECK(refused([&] { backend.allreduce(complex, {}); }) == "operation 0 of ComplexFloat");
          CHECK(refused([&] { backend._allgather_base(three, one, {}); }) ==
                "12 bytes, not 4 for each of 2 ranks");
          CHECK(refused([&] { backend._allgather_base(long_one, one, {}); }) ==
                "an output of another type");
          std::vector<std::int64_t> rows{1, 1}, more{2, 2};
          at::Tensor pair = at::zeros({2});
          CHECK(refused([&] { backend.alltoall_base(pair, pair, rows, more, {}); }) ==
                "numbers of rows that do not divide 2 rows over 2 ranks");
          backend.barrier({})->wait();
        }) == kQuiet2);
}

TEST_CASE("ranks that differ: the work fails with both, and all that follow with it") {
  const auto said = run_backends(2, [](ShmBackend& backend) {
    Tensors data{at::zeros({backend.getRank() == 0 ? 4 : 8})}, next{at::zeros({1})};
    const auto work = backend.allreduce(data, {}), behind = backend.allreduce(next, {});
    try {
      behind->wait();
    } catch (const core::InternalError&) {
      work->wait();
    }
  });
  CHECK(said[0] ==
        "rank 0 of the group: takes part in all-reduce of 16 bytes (Float, operation 0), and rank "
        "1 in all-reduce of 32 bytes (Float, operation 0)");
  CHECK(said[1].starts_with("rank 1 of the group: takes part in all-reduce of 32 bytes"));
}

TEST_CASE("an abort ends the wait of this rank and of the others") {
  const auto said = run_backends(3, [](ShmBackend& backend) {
    Tensors data{at::zeros({4})};
    if (backend.getRank() == 2) {
      backend.abort();
    } else {
      backend.barrier({})->wait();
      backend.allreduce(data, {})->wait();
    }
  });
  CHECK(said[0] == "rank 2 of the group has given up");
  CHECK(said[1] == "rank 2 of the group has given up");
}

TEST_CASE("shut down twice, with what was not done; later calls fail") {
  auto arenas = testing::make_arenas({.ranks = 2, .slots = 4, .slot_bytes = 1024});
  const auto backend = c10::make_intrusive<ShmBackend>(std::move(arenas[0]), 30s);
  const auto waits = backend->barrier({});  // rank 1 never comes
  backend->shutdown();
  backend->shutdown();
  CHECK_THROWS_AS(waits->wait(), c10::DistError);
  CHECK_THROWS_AS(backend->barrier({})->wait(), c10::DistError);
  CHECK(waits->getFuture()->hasError());
}

// Two groups of the same ranks, whose calls are made in another order on each.
TEST_CASE("two groups do not wait for each other") {
  auto first = testing::make_arenas({.ranks = 2, .slots = 4, .slot_bytes = 1024});
  auto second = testing::make_arenas({.ranks = 2, .slots = 4, .slot_bytes = 1024});
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto a = c10::make_intrusive<ShmBackend>(std::move(first[rank]), 30s);
      const auto b = c10::make_intrusive<ShmBackend>(std::move(second[rank]), 30s);
      for (int i = 0; i < 50; ++i) {
        Tensors one{at::full({500}, i)}, two{at::full({500}, -i)};
        auto& earlier = rank == 0 ? a : b;
        auto& later = rank == 0 ? b : a;
        const auto work = earlier->allreduce(rank == 0 ? one : two, {});
        later->allreduce(rank == 0 ? two : one, {})->wait();
        work->wait();
        if (!one[0].eq(2 * i).all().item<bool>() || !two[0].eq(-2 * i).all().item<bool>()) ++wrong;
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
}

// Gloo is the reference: two ranks have one sum, from three on it rounds otherwise.
TEST_CASE("processes get what Gloo gives them, within rounding") {
  for (const int ranks : {2, 4}) {
    const auto results = testing::run_ranks({.world_size = ranks}, [](const core::WorkerEnv& env) {
      Group gloo(env, at::kCPU, 30s, core::Beat(), {}, CpuExchange::kGloo);
      core::WorkerEnv client = env;
      client.use_agent_store = true;  // rank 0 hosts it already
      const auto store = open_store(client, 30s);
      ShmMeeting meeting = meet_in_memory(*store, env.rank, env.world_size);
      if (!meeting.arena) return meeting.why_not;
      const auto shm = c10::make_intrusive<ShmBackend>(std::move(meeting.arena), 30s);
      std::string text;
      for (const std::int64_t count : {1L, 1000L, 200'001L}) {
        for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
          const at::Tensor theirs =
              at::arange(count, at::kDouble).add(env.rank).sin().mul(10).to(type);
          Tensors ours{theirs.clone()};
          gloo.all_reduce_sum(theirs, "sum").wait();
          shm->allreduce(ours, {})->wait();
          const double tolerance = type == at::kBFloat16 ? 0.5 : 1e-5;  // two last places
          const bool same = env.world_size == 2 || type == at::kLong;
          if (same ? !ours[0].equal(theirs)
                   : !at::allclose(ours[0].to(at::kDouble), theirs.to(at::kDouble), 1e-6,
                                   tolerance)) {
            text += fmt::format("{} of {} differs ", c10::toString(type), count);
          }
        }
      }
      gloo.barrier("end");
      return text;
    });
    for (const auto& result : results) {
      CHECK(result.text == "");  // NOLINT(readability-container-size-empty): shows it
      CHECK(result.status == 0);
    }
  }
}

}  // namespace
}  // namespace scaletrain::dist
