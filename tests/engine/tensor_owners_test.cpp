// Optimizers of whole tensors on ranks that have parts of them, against one process that is given
// the same gradients: the same bits.
#include "lib/engine/tensor_owners.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/optim/clip.h"
#include "lib/parallel/sharded.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"
#include "tests/dist/ranks.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;

constexpr int kOwnerSteps = 5;

// 3 ranks cut these within rows, and the last two have nothing of the smallest.
const std::map<std::string, std::vector<std::int64_t>>& owned_shapes() {
  static const std::map<std::string, std::vector<std::int64_t>> shapes{{"a.weight", {24, 17}},
                                                                       {"a.bias", {24}},
                                                                       {"b.weight", {9, 40}},
                                                                       {"c.kernel", {6, 5, 3, 3}},
                                                                       {"d.norm", {7}}};
  return shapes;
}

std::vector<units::NamedParameter> owned_parameters(at::ScalarType type) {
  at::manual_seed(5);
  std::vector<units::NamedParameter> result;
  for (const auto& [name, shape] : owned_shapes()) {
    result.push_back({.name = name,
                      .tensor = at::randn(shape).to(type).requires_grad_(true),
                      .decays = shape.size() > 1});
  }
  return result;
}

at::Tensor owned_gradient(const std::string& name, int step) {
  at::manual_seed(100 * static_cast<std::uint64_t>(step) + name[0]);
  return at::randn(owned_shapes().at(name)) * 0.1;
}

recipe::Optimizer owned_config(const std::string& name) {
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find(name));
  config.weight_decay = 0.1;
  if (name.find("8bit") != std::string::npos) config.options.at("min_8bit_size") = std::int64_t{64};
  if (name == "soap") config.options.at("frequency") = std::int64_t{2};
  config.centralize_gradients = name == "nadam";  // as any other
  return config;
}

// Step 3 is left out.
at::Tensor left_out(int step) { return at::full({}, step == 3 ? 1.F : 0.F); }

struct Outcome {
  std::map<std::string, at::Tensor> weights, state;
};

std::unique_ptr<optim::Optimizer> trained_alone(
    const recipe::Optimizer& config, const std::vector<units::NamedParameter>& parameters) {
  auto optimizer = optim::make_optimizer(config, parameters);
  for (int step = 0; step < kOwnerSteps; ++step) {
    for (const units::NamedParameter& one : parameters) {
      one.tensor.mutable_grad() = owned_gradient(one.name, step);
    }
    optimizer->step(0.01, left_out(step));
  }
  return optimizer;
}

Outcome alone(const recipe::Optimizer& config) {
  const std::vector<units::NamedParameter> parameters = owned_parameters(at::kFloat);
  Outcome outcome{.weights = {},
                  .state = local_tensors(trained_alone(config, parameters)->state())};
  for (const units::NamedParameter& one : parameters) outcome.weights[one.name] = one.tensor;
  return outcome;
}

std::vector<units::NamedParameter> trained(const parallel::Placement& placement) {
  std::vector<units::NamedParameter> result;
  for (const units::NamedParameter& part : placement.sharded_parameters()) {
    if (part.tensor.requires_grad()) result.push_back(part);
  }
  return result;
}

at::Tensor part_of_whole(const at::Tensor& whole, const units::NamedParameter& part) {
  return whole.detach().reshape({-1}).narrow(0, part.begin, part.tensor.numel());
}

void give_gradients(const std::vector<units::NamedParameter>& parts, int step) {
  for (const units::NamedParameter& part : parts) {
    if (part.tensor.numel() == 0) continue;
    part.tensor.mutable_grad() = part_of_whole(owned_gradient(part.name, step), part).clone();
  }
}

// "": as alone.
std::string differences_from_one(const recipe::Optimizer& config, const dist::Mesh& mesh,
                                 parallel::ShardLevel level) {
  const auto placement = parallel::make_placement(owned_parameters(at::kFloat), mesh,
                                                  {.level = level, .units = {}, .frozen = {}});
  placement->start({});
  const std::vector<units::NamedParameter> parts = trained(*placement);
  const auto optimizer = with_owners(
      [&](std::vector<units::NamedParameter> owned) {
        return optim::make_optimizer(config, std::move(owned));
      },
      parts, mesh.group(core::Axis::kShard));
  for (int step = 0; step < kOwnerSteps; ++step) {
    give_gradients(parts, step);
    optimizer->step(0.01, left_out(step));
  }
  const Outcome expected = alone(config);
  std::string differs;
  for (const units::NamedParameter& part : parts) {
    const at::Tensor other = part_of_whole(expected.weights.at(part.name), part);
    if (!at::equal(part.tensor.detach(), other)) differs += " " + part.name;
  }
  // Each tensor of the state is somewhere, once.
  at::Tensor found = at::zeros({static_cast<std::int64_t>(expected.state.size())}, at::kLong);
  const units::Shards shards = optimizer->state();
  const units::NamedTensors state = local_tensors(shards);
  for (std::int64_t i = 0; const auto& [name, tensor] : expected.state) {
    const auto own = state.find(name);
    if (own != state.end() && !at::equal(own->second, tensor)) differs += " " + name;
    if (own != state.end() || name.find('/') == std::string::npos) found[i].add_(1);
    ++i;
  }
  mesh.group(core::Axis::kShard).all_reduce_sum(found, "found").wait();
  for (std::int64_t i = 0; const auto& [name, tensor] : expected.state) {
    const bool is_of_all = name.find('/') == std::string::npos;
    const int most = is_of_all ? mesh.size(core::Axis::kShard) : 1;
    if (found[i].item<std::int64_t>() != most) differs += " lost " + name;
    ++i;
  }
  // Each rank names the state of all; what it holds is full.
  for (const auto& [name, tensor] : expected.state) {
    if (!shards.contains(name)) differs += " not named " + name;
  }
  for (const auto& [name, shard] : shards) {
    if (shard.is_here() && !shard.is_full()) differs += " not full " + name;
  }
  return differs;
}

// What `body` says on each of `ranks` that hold a model together.
void check_on_ranks(int ranks, int shard,
                    const std::function<std::string(const dist::Mesh&)>& body) {
  const auto results = testing::run_ranks(
      {.world_size = ranks, .limit_s = 100}, [&](const core::WorkerEnv& env) -> std::string {
        at::set_num_threads(1);
        dist::Group world(env, at::kCPU, 60s);
        core::MeshSizes sizes;
        sizes.shard = shard;
        const dist::Mesh mesh(world, core::MeshPlan(ranks, sizes));
        return body(mesh);
      });
  for (const auto& result : results) CHECK(result.text == "");
}

TEST_CASE("optimizers of whole tensors have the bits of one process where ranks have parts") {
  const std::vector<std::string> names{"adafactor", "adamw_8bit", "lamb", "lars",
                                       "lion_8bit", "muon",       "soap", "nadam"};
  for (const int ranks : {3, 4}) {
    check_on_ranks(ranks, ranks == 4 ? 2 : 3, [&](const dist::Mesh& mesh) {
      std::string differs;
      for (const std::string& name : names) {
        for (const auto level :
             {parallel::ShardLevel::kOptimizer, parallel::ShardLevel::kParameters}) {
          const std::string one = differences_from_one(owned_config(name), mesh, level);
          if (!one.empty()) differs += fmt::format("{} of {} ranks:{}; ", name, ranks, one);
        }
      }
      return differs;
    });
  }
}

// Takes the gradient away, and shows what it was given.
class Recorded : public optim::Optimizer {
 public:
  explicit Recorded(std::vector<units::NamedParameter> owned) : owned_(std::move(owned)) {}
  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& /*found_inf*/) override {
    for (const units::NamedParameter& one : owned_) one.tensor.sub_(one.tensor.grad() * lr);
  }
  void set_weight_decay(double weight_decay) override { said += fmt::format("{} ", weight_decay); }
  units::Shards state() override { return {}; }
  void resume_at(std::int64_t step) override { said += fmt::format("from {} ", step); }

  // Bytes of the tensors' memory, and how many gradients there are.
  std::string memory() const {
    std::size_t bytes = 0;
    int gradients = 0;
    for (const units::NamedParameter& one : owned_) {
      bytes += one.tensor.storage().nbytes();
      gradients += one.tensor.grad().defined() ? 1 : 0;
    }
    return fmt::format("{} {}", bytes, gradients);
  }

  std::string said;
  std::vector<units::NamedParameter> owned_;
};

TEST_CASE("weights for evaluation are the parts of those that one process has") {
  recipe::Optimizer config = owned_config("schedule_free_adamw");
  config.centralize_gradients = true;
  check_on_ranks(3, 3, [&](const dist::Mesh& mesh) -> std::string {
    const auto placement =
        parallel::make_placement(owned_parameters(at::kFloat), mesh, {.units = {}, .frozen = {}});
    placement->start({});
    const std::vector<units::NamedParameter> parts = trained(*placement);
    const auto optimizer = with_owners(
        [&](std::vector<units::NamedParameter> owned) {
          return optim::make_optimizer(config, std::move(owned));
        },
        parts, mesh.group(core::Axis::kShard));
    for (int step = 0; step < kOwnerSteps; ++step) {
      give_gradients(parts, step);
      optimizer->step(0.01, left_out(step));
    }
    const std::vector<units::NamedParameter> parameters = owned_parameters(at::kFloat);
    const auto one = trained_alone(config, parameters);
    const auto expected = one->evaluation_weights(), found = optimizer->evaluation_weights();
    const units::Shards shards = optimizer->state();
    const units::NamedTensors trained_weights = local_tensors(one->state()),
                              state = local_tensors(shards);
    std::string differs = optimizer->has_evaluation_weights() ? "" : "has none; ";
    for (const units::NamedParameter& part : parts) {
      const std::string y = "y/" + part.name;
      if (!shards.contains(y)) differs += y + " is not named; ";
      if (part.tensor.numel() == 0) {
        if (found.contains(part.name) || state.contains(y)) differs += part.name + " is there; ";
        continue;
      }
      if (!at::equal(found.at(part.name), part_of_whole(expected.at(part.name), part))) {
        differs += part.name + "; ";
      }
      const bool is_weight = state.at(y).is_alias_of(part.tensor) &&
                             at::equal(state.at(y), part_of_whole(trained_weights.at(y), part));
      if (!is_weight) differs += y + "; ";
    }
    return differs;
  });
}

TEST_CASE("each rank owns about as much, has it in memory for a step alone, and types do not mix") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    std::vector<units::NamedParameter> parts, whole;
    for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
      for (units::NamedParameter& one : owned_parameters(type)) {
        one.name += type == at::kFloat ? "" : "16";
        units::NamedParameter part = one;
        const std::int64_t all = one.tensor.numel(), half = all / 2;
        part.shard = range_of(one.state(), env.rank == 0 ? 0 : half, env.rank == 0 ? half : all);
        part.begin = env.rank == 0 ? 0 : half;
        part.tensor =
            part_of_whole(one.tensor, {.name = "",
                                       .tensor = at::empty(env.rank == 0 ? half : all - half),
                                       .begin = part.begin})
                .clone()
                .requires_grad_(true);
        part.tensor.mutable_grad() = at::ones_like(part.tensor);
        parts.push_back(std::move(part));
        whole.push_back(std::move(one));
      }
    }
    Recorded* inner = nullptr;
    const auto owners = with_owners(
        [&](std::vector<units::NamedParameter> owned) {
          auto made = std::make_unique<Recorded>(std::move(owned));
          inner = made.get();
          return made;
        },
        parts, world);
    std::string text;
    for (const units::NamedParameter& one : inner->owned_) text += one.name + " ";
    text += inner->memory();
    owners->step(0.5, {});
    text += " " + inner->memory();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor expected = part_of_whole(whole[i].tensor - 0.5, parts[i]);
      if (!at::equal(parts[i].tensor.detach(), expected)) text += " " + parts[i].name + " differs";
    }
    owners->set_weight_decay(0.25);
    owners->resume_at(7);
    return text + " " + inner->said;
  });
  CHECK(results[0].text ==
        "a.bias16 a.weight16 b.weight16 c.kernel16 d.norm16 0 0 0 0 0.25 from 7 ");
  CHECK(results[1].text == "a.bias a.weight b.weight c.kernel d.norm 0 0 0 0 0.25 from 7 ");
}

TEST_CASE(
    "a tensor that is cut in another way too, and one without a gradient, are errors of ours") {
  dist::Group alone({}, at::kCPU, 1s);
  const auto message = [&](const units::NamedParameter& part) -> std::string {
    const auto make = [](std::vector<units::NamedParameter> owned) {
      return std::make_unique<Recorded>(std::move(owned));
    };
    try {
      with_owners(make, {part}, alone)->step(0.5, {});
    } catch (const core::InternalError& error) {
      return error.what();
    }
    return "";
  };
  units::NamedParameter part{.name = "w", .tensor = at::zeros({4}).requires_grad_(true)};
  CHECK(message(part) == "w: has no gradient");
  part.shard = units::Shard{.shape = {8}, .slices = {{.begin = {0}, .size = {4}, .last = 4}}};
  CHECK(message(part) == "an owner for each tensor: w is cut in another way too");
}

TEST_CASE("adaptive clipping adds up each unit's squares over the ranks that have parts of it") {
  check_on_ranks(3, 3, [](const dist::Mesh& mesh) {
    const auto placement = parallel::make_placement(owned_parameters(at::kFloat), mesh, {});
    placement->start({});
    const std::vector<units::NamedParameter> parts = trained(*placement);
    give_gradients(parts, 0);
    const std::vector<units::NamedParameter> whole = owned_parameters(at::kFloat);
    for (const units::NamedParameter& one : whole) {
      one.tensor.mutable_grad() = owned_gradient(one.name, 0);
    }
    constexpr double kFactor = 0.1;  // some units are below
    optim::clip_grad_adaptive(whole, kFactor);
    optim::clip_grad_adaptive(
        optim::ShardedParameters{
            .parts = parts,
            .sum =
                [&](const at::Tensor& values) {
                  mesh.group(core::Axis::kShard).all_reduce_sum(values, "units").wait();
                }},
        kFactor);
    std::string differs;
    bool has_clipped = false, has_left = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].tensor.numel() == 0) continue;
      const at::Tensor expected = part_of_whole(whole[i].tensor.grad(), parts[i]);
      const at::Tensor before = part_of_whole(owned_gradient(parts[i].name, 0), parts[i]);
      has_clipped = has_clipped || !at::equal(before, expected);
      has_left = has_left || before.eq(expected).any().item<bool>();
      if (!at::allclose(parts[i].tensor.grad(), expected, 1e-6, 1e-9)) {
        differs += " " + parts[i].name;
      }
    }
    if (!has_clipped) differs += " nothing was clipped";
    if (mesh.world().rank() == 0 && !has_left) differs += " everything was clipped";
    return differs;
  });
}

}  // namespace
}  // namespace scaletrain::engine
