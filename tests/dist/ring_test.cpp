#include "lib/dist/ring.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/dist/ranks.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;

// Whose number this rank has got after each step of a message that goes around, and on the way of
// many that are sent before any is taken.
std::string go_around(const core::WorkerEnv& env, int context, CpuExchange kind) {
  Group world(env, at::kCPU, 30s, core::Beat(), {}, kind);
  Mesh mesh(world, core::MeshPlan(
                       env.world_size,
                       {.pipe = 1, .replica = {}, .shard = 1, .context = context, .tensor = 1}));
  Ring ring = open_ring(mesh, core::Axis::kContext);
  std::string text = fmt::format("place {} of {}:", ring.place, ring.places);
  at::Tensor held = at::full({2}, env.rank, at::kFloat);
  for (int step = 0; step < ring.places; ++step) {
    ring.to_next.send(held, "number");
    at::Tensor next = at::empty({2});
    ring.from_before.receive(next, "number");
    held = next;
    text += fmt::format(" {}", held[1].item<float>());
  }
  constexpr int kMany = 10;
  for (int i = 0; i < kMany; ++i) ring.to_next.send(at::full({1}, i, at::kFloat), "many");
  const at::Tensor got = at::empty({1});
  for (int i = 0; i < kMany; ++i) {
    ring.from_before.receive(got, "many");
    if (got.item<float>() != static_cast<float>(i)) text += " in another order";
  }
  ring.to_next.flush();
  mesh.end("end");
  return text;
}

}  // namespace

TEST_CASE("what a rank sends comes from the one before to the next, around and home") {
  for (const CpuExchange kind : {CpuExchange::kShm, CpuExchange::kGloo}) {
    const auto three = testing::run_ranks(
        {.world_size = 3}, [kind](const core::WorkerEnv& env) { return go_around(env, 3, kind); });
    CHECK(three[0].text == "place 0 of 3: 2 1 0");
    CHECK(three[1].text == "place 1 of 3: 0 2 1");
    CHECK(three[2].text == "place 2 of 3: 1 0 2");
    const auto two_rings = testing::run_ranks(
        {.world_size = 4}, [kind](const core::WorkerEnv& env) { return go_around(env, 2, kind); });
    CHECK(two_rings[0].text == "place 0 of 2: 1 0");
    CHECK(two_rings[1].text == "place 1 of 2: 0 1");
    CHECK(two_rings[2].text == "place 0 of 2: 3 2");
    CHECK(two_rings[3].text == "place 1 of 2: 2 3");
  }
}

}  // namespace scaletrain::dist
