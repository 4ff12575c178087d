#include "lib/parallel/sync/fellows.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using parallel::Fellows;
using testing::run_ranks;

const recipe::Sync kAsync{.name = "async", .steps = 1, .staleness = 0};

TEST_CASE("replicas give parts of their weights and go on from what all have made of them") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    Fellows fellows(kAsync, {at::ones({3}), at::zeros({2})}, 5, group, "127.0.0.1");
    const double rank = env.rank;
    // Only the second part, in which rank 1 has learned 2 and rank 0 nothing.
    const auto first = fellows.exchange({{1, at::full({2}, 2 * rank)}}, 6);
    const auto both = fellows.exchange({{0, at::full({3}, 1 - rank)}, {1, first[0] + 4}}, 7);
    const std::string said =
        fmt::format("{}, {} {}, alone {}", first[0][1].item<double>(), both[0][2].item<double>(),
                    both[1][0].item<double>(), group.world_size() == 1);
    fellows.leave(/*is_over=*/true);
    if (!fellows.hosts()) return said;
    const bool all = fellows.await_all(std::nullopt);
    return said + fmt::format("; {} {} {}", all, fellows.fetch(1)[0].item<double>(),
                              fellows.places()[1].steps);
  });
  // 0 + 2 / 2; 1 - 1 / 2 and 1 + 4 / 2 + 4 / 2.
  CHECK(results[0].text == "1, 0.5 5, alone true; true 5 7");
  CHECK(results[1].text == "1, 0.5 5, alone true");
}

TEST_CASE("rank 0 waits for the others' leave for so long only") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    Fellows fellows(kAsync, {at::ones({2})}, 0, group, "127.0.0.1");
    if (env.rank == 1) {
      sleep(2);
      return std::string();
    }
    fellows.stop_all();
    const auto weights = fellows.exchange({{0, at::full({2}, 3)}}, 1);
    fellows.leave(/*is_over=*/false);
    const bool all = fellows.await_all(50ms);
    // An answer that comes too late is passed over.
    return fmt::format("{} {} {} {}", weights[0][0].item<double>(), fellows.shall_stop(), all,
                       fellows.fetch(0)[1].item<double>());
  });
  CHECK(results[0].text == "2 true false 2");  // 1 + (3 - 1) / 2
}

}  // namespace
