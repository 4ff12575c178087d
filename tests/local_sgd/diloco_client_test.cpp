#include "lib/local_sgd/diloco_client.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

#include "lib/core/log.h"
#include "lib/core/process/signals.h"
#include "tests/dist/ranks.h"
#include "tests/local_sgd/gate.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using local_sgd::DilocoClient;
using testing::run_ranks;

// Runs one client per replica, which begin at step 4.
std::vector<testing::RankResult> run_clients(
    int replicas, const std::function<std::string(DilocoClient& client, int rank)>& body) {
  return run_ranks({.world_size = replicas}, [&](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    dist::Group group(env, at::kCPU, 30s);
    dist::Mesh mesh(group, core::MeshPlan(replicas));
    DilocoClient client(4, mesh, "127.0.0.1");
    if (group.world_size() != 1) return std::string("not alone");
    return body(client, env.rank);
  });
}

at::Tensor weights_of(double value) { return at::full({3}, value); }

std::string text_of(const std::optional<at::Tensor>& mean) {
  return mean ? fmt::format("{:g}", (*mean)[0].item<double>()) : "given up";
}

TEST_CASE("replicas take the mean of parts, and rank 0 knows how far each is") {
  const auto results = run_clients(3, [](DilocoClient& client, int rank) {
    std::string said = text_of(client.mean_of(0, weights_of(rank), 6));
    said += " " + text_of(client.mean_of(1, weights_of(2 * rank), 6));
    said += client.synchronize(6) ? " meet" : " given up";
    if (client.stop_requested()) said += " stop";
    client.leave(std::nullopt);
    client.leave(std::nullopt);  // nothing more
    for (const auto& place : client.membership()) {
      if (rank == 0) said += fmt::format(", {} {}", place.steps, place.has_left);
    }
    return said;
  });
  CHECK(results[0].text == "1 2 meet, 6 true, 6 true, 6 true");
  CHECK(results[1].text == "1 2 meet");
  CHECK(results[2].text == "1 2 meet");
}

TEST_CASE("where one is killed the others have the mean of theirs") {
  const auto results = run_clients(3, [](DilocoClient& client, int rank) {
    if (rank == 2) std::raise(SIGKILL);
    std::string said = text_of(client.mean_of(0, weights_of(rank), 6));
    client.synchronize(6);
    client.leave(std::nullopt);
    if (rank == 0) said += fmt::format(" {}", client.membership()[2].is_lost);
    return said;
  });
  CHECK(results[0].text == "0.5 true");
  CHECK(results[1].text == "0.5");
}

TEST_CASE("a stop that one has heard of is at the step of the furthest on all") {
  // 2 waits in an exchange at step 8, 1 hears of the stop at step 5, 0 is asked at step 6.
  const auto results = run_clients(3, [](DilocoClient& client, int rank) {
    std::string said;
    if (rank == 2) {
      said = text_of(client.mean_of(0, at::ones({3}), 8)) + ", ";
      said += client.stop_requested() ? "asked, " : "not asked, ";
    }
    if (rank == 0) {
      while (!client.stop_requested()) usleep(1000);
      said = "asked, ";
    }
    const std::int64_t own = rank == 2 ? 8 : 6 - rank;
    said += fmt::format("stop at {}, ", client.agree_on_stop(own));
    said += text_of(client.mean_of(0, weights_of(rank), 8)) + ", ";
    said += client.synchronize(8) ? "meet" : "given up";
    client.leave(30s);
    return said;
  });
  CHECK(results[0].text == "asked, stop at 8, 1, meet");
  CHECK(results[1].text == "stop at 8, 1, meet");
  CHECK(results[2].text == "given up, asked, stop at 8, 1, meet");
}

TEST_CASE("a stop while a replica waits to meet the others is at its step") {
  const auto results = run_clients(2, [](DilocoClient& client, int rank) {
    std::string said;
    if (rank == 0) said = client.synchronize(8) ? "meet, " : "given up, ";
    said += fmt::format("stop at {}", client.agree_on_stop(rank == 0 ? 8 : 5));
    client.leave(30s);
    return said;
  });
  CHECK(results[0].text == "given up, stop at 8");
  CHECK(results[1].text == "stop at 8");
}

TEST_CASE("where nobody stops rank 0 waits for a slow replica as long as it takes") {
  const auto results = run_clients(2, [](DilocoClient& client, int rank) {
    std::string said;
    core::set_warning_listener([&](const std::string&) { said += "warned, "; });
    if (rank == 1) usleep(300'000);  // rank 0 has looked for a stop by then
    said += text_of(client.mean_of(0, weights_of(rank), 6));
    client.leave(std::nullopt);
    return said;
  });
  for (const auto& result : results) CHECK(result.text == "0.5");
}

TEST_CASE("in a stop rank 0 waits for others for so long only, each time") {
  const testing::Gate is_over;
  const auto results = run_clients(3, [&](DilocoClient& client, int rank) {
    if (rank == 2) {
      is_over.wait();
      return std::string();
    }
    std::string said;
    client.set_stop_limit(400ms);
    if (rank == 0) {
      core::set_warning_listener([&](const std::string&) { said += "warned, "; });
      core::install_stop_handlers();
      std::raise(SIGTERM);
    }
    if (rank == 1)
      while (!client.stop_requested()) usleep(1000);
    said += fmt::format("stop at {}, ", client.agree_on_stop(5 + rank));
    said += text_of(client.mean_of(0, weights_of(rank), 6)) + ", ";
    said += client.synchronize(6) ? "meet" : "given up";
    client.leave(30s);
    if (rank == 0) is_over.open();
    return said;
  });
  CHECK(results[0].text == "warned, stop at 6, 0.5, meet");
  CHECK(results[1].text == "stop at 6, 0.5, meet");
}

TEST_CASE("a stop that comes while a replica waits in an exchange is heard") {
  const auto results = run_clients(2, [](DilocoClient& client, int rank) {
    core::install_stop_handlers();
    std::string said;
    if (rank == 0) {
      std::raise(SIGTERM);
      said = text_of(client.mean_of(0, at::ones({3}), 8)) + ", ";
    } else {
      while (!client.stop_requested()) usleep(1000);
    }
    return said + fmt::format("stop at {}", client.agree_on_stop(rank == 0 ? 8 : 5));
  });
  CHECK(results[0].text == "given up, stop at 8");
  CHECK(results[1].text == "stop at 8");
}

TEST_CASE("a stop that is heard where replicas give rank 0 what it wishes is kept for later") {
  const testing::Gate has_wish, has_heard;
  const auto results = run_clients(3, [&](DilocoClient& client, int rank) {
    if (rank == 1) {
      has_wish.wait();
      core::install_stop_handlers();
      std::raise(SIGTERM);  // it says so where it waits for the wish
    }
    client.agree_on_request(2);
    if (rank == 2) has_wish.open();
    const std::vector<at::Tensor> own{weights_of(rank)};
    std::string said;
    if (rank == 0) {
      said = fmt::format("{} given, ", client.receive_states(own)[1].size());
      said += client.stop_requested() ? "asked, " : "not asked, ";  // and not agreed on
      has_heard.open();
    } else {
      client.send_states(own);
    }
    if (rank == 1) {  // nobody asks it, and what it hears next is the step
      while (!client.stop_requested()) usleep(1000);
      said = fmt::format("{}, ", client.stop_step().value_or(-1));
    }
    if (rank == 2) has_heard.wait();
    said += fmt::format("stop at {}", client.agree_on_stop(5 + rank));
    client.leave(30s);
    return said;
  });
  CHECK(results[0].text == "1 given, asked, stop at 7");
  CHECK(results[1].text == "7, stop at 7");
  CHECK(results[2].text == "stop at 7");
}

TEST_CASE("rank 0 leaves when all others have, or after so long") {
  struct LeaveCase {
    std::optional<std::chrono::milliseconds> limit;
    bool others_leave;
  };
  const std::vector<LeaveCase> cases{{std::nullopt, true}, {30s, true}, {50ms, false}};
  for (const LeaveCase& one : cases) {
    CAPTURE(one.others_leave);
    const testing::Gate has_left;
    const auto results = run_clients(2, [&](DilocoClient& client, int rank) {
      if (rank == 0) {
        client.leave(one.limit);
        const bool all_left = client.membership()[1].has_left;
        has_left.open();
        return fmt::format("all left: {}", all_left);
      }
      if (one.others_leave) {
        // The first of these is answered as rank 0 leaves, when it comes to no exchange any more.
        for (int i = 0; i < 50; ++i) client.mean_of(0, weights_of(i), 6);
        client.leave(std::nullopt);
      } else {
        has_left.wait();
      }
      return std::string();
    });
    CHECK(results[0].text == fmt::format("all left: {}", one.others_leave));
    CHECK(results[1].status == 0);
  }
}

TEST_CASE("rank 0 takes what it wishes of each replica, but of one that is lost") {
  const auto results = run_clients(3, [](DilocoClient& client, int rank) {
    std::string said;
    for (const int wish : {0, 2, 3}) {
      const int heard = client.agree_on_request(rank == 0 ? wish : 7);
      said += fmt::format("wish {}, ", heard);
      if (heard == 0) continue;
      std::vector<at::Tensor> own{at::full({2, 3}, 10 * rank, at::kDouble),
                                  at::full({}, rank, at::kLong), at::empty({0})};
      if (rank == 2) std::raise(SIGKILL);
      if (rank == 1 && wish == 3) own[1] = at::zeros({2}, at::kLong);  // as nobody else has it
      if (rank == 1) client.send_states(own);
      if (rank != 0) continue;
      const auto given = client.receive_states(own);
      if (wish == 3) said += fmt::format("{}", given[1].size());
      if (wish == 3) continue;
      said += fmt::format("{} {} {}, ", given[0].size(), given[1].size(), given[2].size());
      said += fmt::format("{} {} {} {}, ", given[1][0][1][2].item<double>(), given[1][0].dim(),
                          given[1][1].item<std::int64_t>(), given[1][2].numel());
    }
    client.leave(std::nullopt);
    return said;
  });
  CHECK(results[0].text == "wish 0, wish 2, 0 3 0, 10 2 1 0, wish 3, 0");
  CHECK(results[1].text == "wish 0, wish 2, wish 3, ");
}

TEST_CASE("each rank of rank 0's replica takes what those at its place have") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    dist::Group group(env, at::kCPU, 30s);
    dist::Mesh mesh(group, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 2}));
    DilocoClient client(4, mesh, "127.0.0.1");
    const bool takes = env.rank < 2;
    std::string said = fmt::format("wish {}", client.agree_on_request(takes ? 2 : 7));
    const std::vector<at::Tensor> own{at::full({2 + env.rank % 2}, 10 * env.rank)};
    if (takes) {
      const auto given = client.receive_states(own);
      said += fmt::format(", {}", given[0].size());
      for (const at::Tensor& one : given[1]) {
        said += fmt::format(", {} of {}", one.numel(), one[1].item<float>());
      }
    } else {
      client.send_states(own);
    }
    client.leave(std::nullopt);
    mesh.world().barrier("the hub may end");  // of this replica
    return said;
  });
  CHECK(results[0].text == "wish 2, 0, 2 of 20");
  CHECK(results[1].text == "wish 2, 0, 3 of 30");
  CHECK(results[2].text == "wish 2");
  CHECK(results[3].text == "wish 2");
}

}  // namespace
