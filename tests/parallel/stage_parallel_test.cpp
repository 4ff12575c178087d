#include "lib/parallel/stage_parallel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"

namespace scaletrain::parallel {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kWide = 600;  // 1.4 MB: more than the first bucket

// A wide matrix, one that lies in memory column by column, and one that gets no gradient.
std::vector<units::NamedParameter> stage_parameters() {
  return {{.name = "wide", .tensor = at::zeros({kWide, kWide}).requires_grad_()},
          {.name = "columns", .tensor = at::zeros({3, 4}).t().requires_grad_()},
          {.name = "unused", .tensor = at::zeros({2}).requires_grad_(), .counts = false}};
}

}  // namespace

TEST_CASE("gradients are averaged behind the last backward, over the data group alone") {
  // Rank = pipe x 2 + replica: ranks 0 and 1 have a stage, 2 and 3 the other.
  const auto results = testing::run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    at::set_num_threads(1);  // a fork has no threads of the pool
    dist::Mesh mesh(world, core::MeshPlan(4, {.pipe = 2, .replica = {}}));
    StageParallel stage(stage_parameters(), mesh);
    stage.start({{7}});  // a layout of another run says nothing
    std::string text;
    for (int step = 0; step < 2; ++step) {
      stage.zero_grad();
      for (const bool last : {false, true}) {
        stage.begin_micro_step(last);
        const at::Tensor loss = (stage.owned()[0].tensor * (env.rank + 1)).sum() +
                                (stage.owned()[1].tensor * (10 * env.rank)).sum();
        stage.prepare_backward(loss);
        loss.backward();
      }
      stage.exchange_rest();
      for (const units::NamedParameter& one : stage.owned()) {
        const at::Tensor gradient = one.tensor.grad();
        text += fmt::format(
            "{}{} ", gradient.mean().item<float>(),
            at::equal(gradient, at::full_like(gradient, gradient.mean().item())) ? "" : "?");
      }
    }
    mesh.end("end");
    return text + (stage.layout().empty() && !stage.owned()[2].counts ? "" : "?");
  });
  // Two micro-steps: 2 x the mean of rank + 1, and of 10 x rank.
  CHECK(results[0].text == "3 10 0 3 10 0 ");
  CHECK(results[1].text == "3 10 0 3 10 0 ");
  CHECK(results[2].text == "7 50 0 7 50 0 ");
  CHECK(results[3].text == "7 50 0 7 50 0 ");
}

TEST_CASE("gradients of ranks that share sequences are averaged with those of the replicas") {
  // Rank = (pipe x 2 + replica) x 2 + context: ranks 0 to 3 have a stage.
  const auto results = testing::run_ranks({.world_size = 8}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    at::set_num_threads(1);
    dist::Mesh mesh(world, core::MeshPlan(8, {.pipe = 2, .replica = {}, .shard = 1, .context = 2}));
    StageParallel stage(stage_parameters(), mesh);
    stage.start({});
    stage.zero_grad();
    (stage.owned()[1].tensor * (10 * env.rank)).sum().backward();
    stage.exchange_rest();
    const float mean = stage.owned()[1].tensor.grad().mean().item<float>();
    mesh.end("end");
    return fmt::format("{}", mean);
  });
  for (std::size_t rank = 0; rank < 8; ++rank) {
    CHECK(results[rank].text == (rank < 4 ? "15" : "55"));  // 10 x the mean of their numbers
  }
}

TEST_CASE("a stage of one replica keeps its gradients as they are") {
  dist::Group world({}, at::kCPU, 1s);
  dist::Mesh mesh(world, core::MeshPlan(1));
  StageParallel stage(stage_parameters(), mesh);
  stage.start({});
  (stage.owned()[1].tensor * 3).sum().backward();
  stage.exchange_rest();
  CHECK(!stage.owned()[0].tensor.grad().defined());
  CHECK(stage.owned()[1].tensor.grad().mean().item<float>() == 3);
  stage.zero_grad();
  CHECK(!stage.owned()[1].tensor.grad().defined());
}

}  // namespace scaletrain::parallel
