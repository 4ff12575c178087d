#include "lib/parallel/copy_sums.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using parallel::CopySums;
using parallel::GradientExchange;

// What becomes of the rank's number + 1 in two blocks, the second of which has no slots.
std::string summed(const core::WorkerEnv& env, const GradientExchange& exchange) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, std::chrono::seconds(30));
  // Rank = replica x 2 + shard.
  dist::Mesh mesh(world, core::MeshPlan(4, {.replica = {}, .shard = 2}));
  CopySums sums(exchange, mesh);
  sums.add({{.name = "w", .begin = 0, .elements = 4, .rows = 1}});
  sums.add({});
  sums.begin_step(0);
  const at::Tensor first = at::full({4}, env.rank + 1.0F), second = at::full({4}, 7.0F);
  sums.start(0, first);
  sums.start(1, second);
  sums.finish();
  sums.end_step(at::zeros({}));
  const std::string text =
      fmt::format("{} over {}, {}; {} bytes, {} kept", first[0].item<float>(), sums.divisor(),
                  second[0].item<float>(), sums.bytes(), sums.state().size());
  mesh.end("end");
  return text;
}

TEST_CASE("what ranks own is added up with those that own the same, as it is or compressed") {
  struct SumCase {
    GradientExchange exchange;
    std::vector<std::string> expected;  // by rank
  };
  const recipe::Compress bf16{.name = "bf16"}, int8{.name = "int8"};
  const std::vector<SumCase> cases{
      {{}, {"4 over 4, 14; 32 bytes, 0 kept", "6 over 4, 14; 32 bytes, 0 kept"}},
      {{.compress = bf16}, {"1 over 1, 7; 8 bytes, 0 kept", "1.5 over 1, 7; 8 bytes, 0 kept"}},
      {{.compress = int8}, {"1 over 1, 7; 260 bytes, 1 kept", "1.5 over 1, 7; 260 bytes, 1 kept"}},
      {{.every_step = false}, {"1 over 2, 7; 0 bytes, 0 kept", "2 over 2, 7; 0 bytes, 0 kept"}},
  };
  for (const SumCase& one : cases) {
    const auto results = testing::run_ranks(
        {.world_size = 4}, [&](const core::WorkerEnv& env) { return summed(env, one.exchange); });
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(results[rank].text == one.expected[rank]);
    }
    if (one.exchange.every_step) CHECK(results[2].text == one.expected[0]);
  }
}

}  // namespace
