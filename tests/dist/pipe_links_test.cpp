#include "lib/dist/pipe_links.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/dist/ranks.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;

constexpr int kMessages = 20;

at::Tensor message(int from, int number) {
  return at::full({3, 5}, 100 * from + number, at::kFloat).t();  // dense, in another order
}

// Each rank sends many messages both ways before it takes any.
std::string exchange(const core::WorkerEnv& env, CpuExchange kind) {
  Group world(env, at::kCPU, 30s, core::Beat(), {}, kind);
  Mesh mesh(world, core::MeshPlan(env.world_size, {.pipe = 3, .replica = {}}));
  PipeLinks links = open_pipe_links(mesh);
  const int place = mesh.coordinate(core::Axis::kPipe), replicas = env.world_size / 3;
  const int before = (place + 2) % 3 * replicas + env.rank % replicas;
  const int next = (place + 1) % 3 * replicas + env.rank % replicas;
  for (int i = 0; i < kMessages; ++i) {
    links.activations_out.send(message(env.rank, i), "activations");
    links.gradients_out.send(message(env.rank, i), "gradients");
  }
  std::string text;
  for (int i = 0; i < kMessages; ++i) {
    for (auto [link, from] :
         {std::pair(&links.gradients_in, next), {&links.activations_in, before}}) {
      const at::Tensor got = at::empty({3, 5}).t();
      link->receive(got, "message");
      if (!at::equal(got, message(from, i))) text += fmt::format("{} of {} is wrong; ", i, from);
    }
  }
  links.activations_out.flush();
  links.gradients_out.flush();
  mesh.end("end");
  return text;
}

}  // namespace

TEST_CASE("each rank of a pipeline gets from both sides what was sent, in its order") {
  for (const CpuExchange kind : {CpuExchange::kShm, CpuExchange::kGloo}) {
    for (const int ranks : {3, 6}) {
      const auto results =
          testing::run_ranks({.world_size = ranks},
                             [kind](const core::WorkerEnv& env) { return exchange(env, kind); });
      for (const auto& result : results) {
        CHECK(result.text == "");
        CHECK(result.status == 0);
      }
    }
  }
}

TEST_CASE("two ranks have a connection for each direction of each kind") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    Group world(env, at::kCPU, 30s);
    Mesh mesh(world, core::MeshPlan(2, {.pipe = 2, .replica = {}}));
    PipeLinks links = open_pipe_links(mesh);
    links.activations_out.send(at::full({1}, 1.0 + env.rank), "activations");
    links.gradients_out.send(at::full({1}, 11.0 + env.rank), "gradients");
    const at::Tensor activations = at::zeros({1}), gradients = at::zeros({1});
    links.gradients_in.receive(gradients, "gradients");
    links.activations_in.receive(activations, "activations");
    links.activations_out.flush();
    links.gradients_out.flush();
    mesh.end("end");
    return fmt::format("{} {}", activations.item<float>(), gradients.item<float>());
  });
  CHECK(results[0].text == "2 12");
  CHECK(results[1].text == "1 11");
}

}  // namespace scaletrain::dist
