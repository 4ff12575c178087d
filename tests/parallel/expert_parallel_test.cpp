#include "lib/parallel/expert_parallel.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/dist/ranks.h"

namespace scaletrain::parallel {
namespace {

using namespace std::chrono_literals;

const ExpertPlaces kPlaces{{"expert.0", 0}, {"expert.1", 1}};

std::vector<units::NamedParameter> parameters(const std::vector<std::int64_t>& shape = {2, 3}) {
  std::vector<units::NamedParameter> result;
  for (const char* const name : {"gate", "expert.0", "expert.1", "head"}) {
    result.push_back({.name = name, .tensor = at::zeros(shape).requires_grad_()});
  }
  return result;
}

std::string describe(const std::vector<units::NamedParameter>& list) {
  std::string text;
  for (const units::NamedParameter& one : list) {
    text += fmt::format("{} {}{} ", one.name, one.tensor.numel(), one.counts ? "" : " elsewhere");
  }
  return text;
}

}  // namespace

TEST_CASE("a rank owns its experts and all else, and one of a copy of the model counts that") {
  const auto results = testing::run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(4, {.replica = {}, .expert = 2}));
    const auto model = parameters();
    ExpertParallel placement(model, mesh, kPlaces, {});
    std::string text = describe(placement.owned()) + "| ";
    for (const units::NamedParameter& part : placement.sharded_parameters()) {
      text += fmt::format("{} {} of {} ", part.name, part.tensor.numel(),
                          format::element_count(part.shape()));
    }
    placement.start({});
    std::string memory;
    for (const auto& one : model) memory += fmt::format(" {}", one.tensor.storage().nbytes());
    mesh.end("end");
    return text + "|" + memory;
  });
  for (const int rank : {0, 2}) {
    CHECK(results[rank].text ==
          "gate 6 expert.0 6 head 6 | expert.0 6 of 6 expert.1 0 of 6 | 24 24 0 24");
  }
  for (const int rank : {1, 3}) {
    CHECK(results[rank].text ==
          "gate 6 elsewhere expert.1 6 head 6 elsewhere | expert.0 0 of 6 expert.1 6 of 6 "
          "| 24 0 24 24");
  }
}

TEST_CASE("each rank owns its tensor-parallel slice of its own experts only") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(2, {.replica = {}, .expert = 2}));
    auto model = parameters();
    for (units::NamedParameter& one : model) {
      one.shard = units::Shard{.shape = {4, 3}, .slices = {format::range_piece({4, 3}, 6, 12)}};
    }
    ExpertParallel placement(model, mesh, kPlaces, {});
    std::string text;
    for (const units::NamedParameter& part : placement.sharded_parameters()) {
      text += fmt::format("{} {} of {} ", part.tensor.numel(), part.state().slices.size(),
                          format::element_count(part.shape()));
    }
    mesh.end("end");
    return text;
  });
  CHECK(results[0].text == "6 1 of 12 0 0 of 12 ");
  CHECK(results[1].text == "0 0 of 12 6 1 of 12 ");
}

TEST_CASE("behind a pipeline's backward each stage has the experts of its own units") {
  const auto results = testing::run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(4, {.pipe = 2, .replica = {}, .expert = 2}));
    const auto all = parameters();
    // The second stage has the head and no experts.
    const std::vector<units::NamedParameter> own =
        env.rank < 2 ? std::vector(all.begin(), all.end() - 1) : std::vector{all.back()};
    ExpertParallel placement(own, mesh, kPlaces, {});
    std::string text = describe(placement.owned());
    placement.start({});
    placement.zero_grad();
    placement.begin_micro_step(true);
    at::Tensor loss = at::zeros({});
    for (const auto& one : placement.owned()) loss = loss + one.tensor.sum() * (env.rank + 1.0);
    placement.prepare_backward(loss);
    loss.backward();
    placement.end_backward();
    placement.exchange_rest();
    for (const auto& one : placement.owned()) {
      text += fmt::format("{} ", one.tensor.grad().mean().item<float>());
    }
    mesh.end("end");
    return text;
  });
  CHECK(results[0].text == "gate 6 expert.0 6 1.5 0.5 ");
  CHECK(results[1].text == "gate 6 elsewhere expert.1 6 1.5 1 ");
  CHECK(results[2].text == "head 6 3.5 ");
  CHECK(results[3].text == "head 6 elsewhere 3.5 ");
}

TEST_CASE(
    "gradients of experts are summed over the ranks that have the same, for the mean of all") {
  const auto results = testing::run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(4, {.replica = {}, .expert = 2}));
    ExpertParallel placement(parameters(), mesh, kPlaces, {});
    placement.start({});
    std::string text;
    for (int step = 0; step < 2; ++step) {
      placement.begin_step(step);
      placement.zero_grad();
      for (const bool last : {false, true}) {
        placement.begin_micro_step(last);
        at::Tensor loss = at::zeros({});
        for (const units::NamedParameter& one : placement.owned()) {
          // In the second step nobody asks the experts of ranks 1 and 3.
          const bool is_expert = one.name.starts_with("expert");
          if (is_expert && step == 1 && env.rank % 2 == 1) continue;
          loss = loss + one.tensor.sum() * (env.rank + 1.0) * (is_expert ? 10.0 : 1.0);
        }
        placement.prepare_backward(loss);
        loss.backward();
        placement.end_backward();
      }
      placement.exchange_rest();
      for (const units::NamedParameter& one : placement.owned()) {
        const at::Tensor gradient = one.tensor.grad();
        text += fmt::format("{} ", gradient.mean().item<float>());
      }
    }
    mesh.end("end");
    return text + fmt::format("{} bytes", placement.exchanged_bytes());
  });
  // Each step's: the gate and the head, with all ranks, and an expert, of 6 floats each.
  // Of two micro-steps: 2 x the mean of rank + 1; 2 x 10 x (1 + 3) / 4, and (2 + 4) / 4.
  for (const int rank : {0, 2}) CHECK(results[rank].text == "5 20 5 5 20 5 144 bytes");
  for (const int rank : {1, 3}) CHECK(results[rank].text == "5 30 5 5 0 5 144 bytes");
}

TEST_CASE("what copies of the model exchange in a step is compressed, or stays with each of them") {
  struct ExchangeCase {
    core::MeshSizes sizes;
    GradientExchange exchange;
    std::vector<std::string> expected;  // by rank: the gate's gradient and the expert's, and bytes
  };
  const recipe::Compress bf16{.name = "bf16"}, later{.name = "bf16", .warmup = 1};
  const core::MeshSizes plain{.replica = {}, .expert = 2};
  // Of rank + 1, and ten times that; of all else 64 floats, and 32 of an expert.
  const std::vector<ExchangeCase> cases{
      {plain, {.compress = bf16}, {"2.5 10 192", "2.5 15 192", "2.5 10 192", "2.5 15 192"}},
      {plain, {.compress = later}, {"2.5 10 384", "2.5 15 384", "2.5 10 384", "2.5 15 384"}},
      {plain, {.every_step = false}, {"1.5 5 256", "1.5 10 256", "3.5 15 256", "3.5 20 256"}},
      {{.replica = {}, .shard = 2, .expert = 2},
       {.every_step = false},
       {"1.5 5 256", "1.5 10 256", "3.5 15 256", "3.5 20 256"}},
  };
  for (const ExchangeCase& one : cases) {
    CAPTURE(&one - cases.data());
    const auto results = testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
      dist::Group world(env, at::kCPU, 30s);
      dist::Mesh mesh(world, core::MeshPlan(4, one.sizes));
      const auto model = parameters({4, 8});
      ExpertParallel placement(model, mesh, kPlaces,
                               {.level = ShardLevel::kGradients, .units = {{"gate"}, {"head"}}},
                               one.exchange);
      placement.start({});
      placement.begin_step(0);
      placement.zero_grad();
      placement.begin_micro_step(true);
      const std::size_t own = 1 + static_cast<std::size_t>(env.rank % 2);  // its expert
      const at::Tensor loss =
          (model[0].tensor.sum() + model[3].tensor.sum() + model[own].tensor.sum() * 10.0) *
          (env.rank + 1.0);
      placement.prepare_backward(loss);
      loss.backward();
      placement.end_backward();
      placement.exchange_rest();
      placement.end_step(at::zeros({}));
      std::string text;
      for (const units::NamedParameter& part : placement.owned()) {
        if (part.name == "head") continue;
        text += fmt::format("{} ", part.tensor.grad().max().item<float>());
      }
      text += fmt::format("{}", placement.exchanged_bytes());
      mesh.end("end");
      return text;
    });
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      CHECK(results[rank].text == one.expected[rank]);
    }
  }
}

TEST_CASE("what is no expert's is cut over ranks unit by unit, what is not trained too") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(2, {.replica = {}, .shard = 2, .expert = 2}));
    const auto model = parameters({4, 8});
    const ShardingOptions sharding{.units = {{"gate", "expert.0", "expert.1", "table"}, {"head"}},
                                   .frozen = {{.name = "table", .tensor = at::ones({4, 8})}}};
    ExpertParallel placement(model, mesh, kPlaces, sharding);
    std::string text =
        describe(placement.owned()) + "| " + describe(placement.sharded_parameters());
    placement.start({});
    UnitHooks& hooks = *placement.hooks();
    // Which of the gate and the head are there.
    const auto look = [&] {
      text += fmt::format("{}{} ", model[0].tensor.storage().nbytes() > 0 ? "g" : "-",
                          model[3].tensor.storage().nbytes() > 0 ? "h" : "-");
    };
    text += "| ";
    look();
    placement.zero_grad();
    placement.begin_micro_step(true);
    hooks.enter(0, Pass::kForward);  // and the next one is on its way
    look();
    hooks.leave(0, Pass::kForward);
    look();
    hooks.enter(1, Pass::kForward);
    const at::Tensor loss = model[3].tensor.sum() * (env.rank + 1.0);
    hooks.leave(1, Pass::kForward);
    placement.prepare_backward(loss);
    hooks.enter(1, Pass::kBackward);
    look();
    loss.backward();
    hooks.leave(1, Pass::kBackward);
    look();
    hooks.end_backward();
    look();
    placement.exchange_rest();
    text += "| ";
    for (const units::NamedParameter& one : placement.owned()) {
      text += fmt::format("{} ", one.tensor.grad().mean().item<float>());
    }
    mesh.end("end");
    return text;
  });
  // The mean of rank + 1 for the head, nothing for all else.
  const std::string then = "| -- gh -h gh g- -- | 0 0 1.5 ";
  CHECK(results[0].text ==
        "gate 16 expert.0 32 head 16 | gate 16 expert.0 32 expert.1 0 head 16 "
        "table 16 " +
            then);
  CHECK(results[1].text ==
        "gate 16 expert.1 32 head 16 | gate 16 expert.0 0 expert.1 32 head 16 "
        "table 16 " +
            then);
}

}  // namespace scaletrain::parallel
