#include "lib/local_sgd/async_client.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"
#include "tests/local_sgd/gate.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using local_sgd::AsyncClient;
using testing::run_ranks;

constexpr std::int64_t kStaleness = 0;

TEST_CASE("replicas give parts of their weights and go on from what all have made of them") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    dist::Mesh mesh(group, core::MeshPlan(2));
    AsyncClient client(kStaleness, {at::ones({3}), at::zeros({2})}, 5, mesh, "127.0.0.1");
    const double rank = env.rank;
    // Only the second part, in which rank 1 has learned 2 and rank 0 nothing.
    const auto first = client.synchronize({{1, at::full({2}, 2 * rank)}}, 6);
    const auto both = client.synchronize({{0, at::full({3}, 1 - rank)}, {1, first[0] + 4}}, 7);
    const std::string said =
        fmt::format("{}, {} {}, alone {}", first[0][1].item<double>(), both[0][2].item<double>(),
                    both[1][0].item<double>(), group.world_size() == 1);
    client.leave(/*is_over=*/true);
    if (!client.hosts()) return said;
    const bool all = client.await_all(std::nullopt);
    return said + fmt::format("; {} {} {}", all, client.fetch(1)[0].item<double>(),
                              client.membership()[1].steps);
  });
  // 0 + 2 / 2; 1 - 1 / 2 and 1 + 4 / 2 + 4 / 2.
  CHECK(results[0].text == "1, 0.5 5, alone true; true 5 7");
  CHECK(results[1].text == "1, 0.5 5, alone true");
}

TEST_CASE("rank 0 waits for the others' leave for so long only") {
  const testing::Gate has_seen;
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    dist::Mesh mesh(group, core::MeshPlan(2));
    AsyncClient client(kStaleness, {at::ones({2})}, 0, mesh, "127.0.0.1");
    if (env.rank == 1) {
      has_seen.wait();
      return std::string();
    }
    client.request_stop();
    const auto weights = client.synchronize({{0, at::full({2}, 3)}}, 1);
    client.leave(/*is_over=*/false);
    const bool all = client.await_all(50ms);
    // An answer that comes too late is passed over.
    const double fetched = client.fetch(0)[1].item<double>();
    has_seen.open();
    return fmt::format("{} {} {} {}", weights[0][0].item<double>(), client.stop_requested(), all,
                       fetched);
  });
  CHECK(results[0].text == "2 true false 2");  // 1 + (3 - 1) / 2
}

TEST_CASE("a replica says whether it leaves as training is over: then it still counts") {
  for (const bool is_over : {false, true}) {
    CAPTURE(is_over);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      dist::Group group(env, at::kCPU, 30s);
      dist::Mesh mesh(group, core::MeshPlan(2));
      AsyncClient client(kStaleness, {at::ones({2})}, 0, mesh, "127.0.0.1");
      if (env.rank == 1) {
        client.leave(is_over);
        return std::string();
      }
      client.await_all(std::nullopt);
      const auto first = client.synchronize({{0, at::full({2}, 3)}}, 1);
      const auto second = client.synchronize({{0, first[0] + 4}}, 2);
      return fmt::format("{} {}", first[0][0].item<double>(), second[0][0].item<double>());
    });
    CHECK(results[0].text == (is_over ? "2 4" : "2 6"));  // 1 + 2 / 2, 2 + 4 / 2 or 2 + 4
  }
}

TEST_CASE("the ranks of a replica take what all have made of their own parts") {
  // Two replicas of two ranks; at the second place there is one part of another size.
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    dist::Mesh mesh(group, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 2}));
    const double place = mesh.coordinate(core::Axis::kShard),
                 replica = mesh.coordinate(core::Axis::kReplica);
    // All begin with what rank 0's replica has.
    const at::Tensor begin = at::full({2 + env.rank % 2}, 10 * place + 5 * replica);
    AsyncClient client(kStaleness, {begin, at::empty({0})}, 0, mesh, "127.0.0.1");
    const auto first = client.synchronize({{0, begin + 2 * replica}, {1, at::empty({0})}}, 1);
    std::string said = fmt::format("{} of {}, {}", first[0].size(0), mesh.world().world_size(),
                                   first[0][1].item<double>());
    client.leave(/*is_over=*/true);
    if (replica != 0) return said;
    if (client.hosts()) {
      client.await_all(std::nullopt);
      client.close();
    }
    mesh.world().barrier("heard");
    said += fmt::format(", {}", client.fetch(0)[1].item<double>());
    mesh.world().barrier("the hub may end");
    return said;
  });
  // 0 + 2 / 2 and 10 + 2 / 2.
  CHECK(results[0].text == "2 of 2, 1, 1");
  CHECK(results[1].text == "3 of 2, 11, 11");
  CHECK(results[2].text == "2 of 2, 1");
  CHECK(results[3].text == "3 of 2, 11");
}

}  // namespace
