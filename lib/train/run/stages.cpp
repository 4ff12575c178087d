#include "lib/train/run/stages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "lib/core/text/text.h"
#include "lib/dist/device.h"
#include "lib/dist/replicate.h"
#include "lib/engine/deferred_weights.h"
#include "lib/nn/layers/linear.h"
#include "lib/parallel/data_parallel.h"
#include "lib/parallel/expert_parallel.h"
#include "lib/parallel/flat_memory.h"
#include "lib/train/model/expert_layout.h"
#include "lib/train/model/number_types.h"
#include "lib/train/rules/shard_types.h"

namespace scaletrain::train {
namespace {

using core::Axis;

// Returns rank 0's forward time of each unit, on all ranks; backward is about proportional.
std::vector<double> measured_costs(Run& run, const std::vector<units::Unit>& units) {
  parallel::DataParallel placement(run.learner.parameters(), *run.mesh);  // never started
  engine::Engine engine({.model = *run.learner.model,
                         .task = *run.task,
                         .precision = *run.learner.precision,
                         .placement = placement,
                         .mesh = *run.mesh,
                         .pipeline = nullptr,
                         .units = units},
                        run.recipe.seed);
  data::BatchStream& stream = *run.sets.train.stream;
  const data::Batch batch = *stream.next();  // training has no end
  const auto costs = engine.measure_units(run.task->prepare(batch, /*training=*/true));
  stream.seek({run.state.epoch, run.state.step_in_epoch});
  const at::Tensor seconds =
      at::zeros({static_cast<std::int64_t>(costs.size())}, at::TensorOptions(at::kDouble));
  auto* const values = seconds.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < costs.size(); ++i) values[i] = costs[i].seconds;
  const at::Tensor shared = seconds.to(run.group->device());
  run.group->broadcast(shared, 0, "time of each unit").wait();
  const at::Tensor host = run.group->to_host(shared);
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

// Parameters whose gradients backward itself must compute: ranks reduce them there, or chunked loss
// needs them for some tokens at a time.
std::set<std::string> wanted_at_once(const Run& run, const std::vector<units::Unit>& units) {
  std::set<std::string> names;
  for (const auto& item : run.learner.model->named_parameters()) {
    if (!torch::autograd::impl::hooks(item.value()).empty()) names.insert(item.key());
  }
  if (run.recipe.loss.chunk > 0) {
    names.insert(units.back().tensors.begin(), units.back().tensors.end());
  }
  return names;
}

std::shared_ptr<engine::DeferredWeights> defer_weights(nn::Model& model,
                                                       const std::set<std::string>& at_once) {
  auto deferred = std::make_shared<engine::DeferredWeights>();
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto linear = std::dynamic_pointer_cast<nn::Linear>(item.value());
    if (linear && !at_once.contains(item.key() + ".weight")) deferred->attach(*linear);
  }
  return deferred;
}

// Name, type, kind of device and shape of a tensor, one in a line.
std::string describe(const NamedTensors& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    text += fmt::format("{} {} {} {}\n", name, static_cast<int>(tensor.scalar_type()),
                        tensor.device().is_cpu() ? 0 : 1, fmt::join(tensor.sizes(), " "));
  }
  return text;
}

// Room for those of `description` that `tensors` lacks.
void add_described(const std::string& description, at::Device device, NamedTensors& tensors) {
  std::istringstream lines(description);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int type = 0, is_on_device = 0;
    words >> name >> type >> is_on_device;
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = 0; words >> size;) sizes.push_back(size);
    const at::TensorOptions options(static_cast<at::ScalarType>(type));
    tensors.try_emplace(
        name, at::empty(sizes, options.device(is_on_device != 0 ? device : at::Device(at::kCPU))));
  }
}

// Broadcasts tensors that all ranks have, named as in the model, from the stage that uses each.
void share_of_model(const engine::Pipeline& pipeline, dist::Group& pipe,
                    const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> of_places(static_cast<std::size_t>(pipe.world_size()));
  for (const auto& [name, tensor] : tensors) {
    const std::vector<int> places = pipeline.places_of(name);
    if (!places.empty()) of_places[static_cast<std::size_t>(places.front())].push_back(tensor);
  }
  for (int place = 0; place < pipe.world_size(); ++place) {
    dist::replicate(pipe, of_places[static_cast<std::size_t>(place)], "tensors of a stage", place);
  }
}

parallel::ShardingOptions sharding_of(const Run& run, const std::vector<units::Unit>& units) {
  const Learner& learner = run.learner;
  parallel::ShardingOptions sharding;
  const std::string& level = run.recipe.parallel.shard_level;
  if (level == "optimizer") sharding.level = parallel::ShardLevel::kOptimizer;
  if (level == "gradients") sharding.level = parallel::ShardLevel::kGradients;
  for (const units::Unit& unit : units) sharding.units.push_back(unit.tensors);
  if (run.pipeline) sharding.runs = run.pipeline->own_units();
  for (const auto& item : learner.model->named_parameters()) {
    if (!item.value().requires_grad()) {
      sharding.frozen.push_back(learner.described(item.key(), item.value()));
    }
  }
  sharding.parts_on_host = run.recipe.offload && run.recipe.offload->parameters;
  take_types(run.recipe, *learner.model, sharding);
  // Hardware without fast bf16 computes in fp32 (lib/precision/precisions/bf16.cpp): layers then
  // take their weights as they are stored.
  const at::Device device = run.group->device();
  if (!precision::multiplies_bf16({device, dist::compute_capability(device)})) {
    sharding.gathered_as_bf16.clear();
  }
  return sharding;
}

// Keeps this rank's stages' parameters; the first of several stages that share one counts it.
void keep_own(const engine::Pipeline& pipeline, std::vector<units::NamedParameter>& parameters) {
  std::erase_if(parameters, [&](const units::NamedParameter& parameter) {
    return !pipeline.has(parameter.name);
  });
  for (units::NamedParameter& parameter : parameters) {
    parameter.counts = parameter.counts && pipeline.counts(parameter.name);
  }
}

// Logs each stage with its share of the costs, which are 0 for a division from the checkpoint.
void report(const engine::Stages& stages, const std::vector<units::Unit>& units,
            const std::vector<double>& costs, const std::string& balance) {
  const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (int stage = 0; stage < stages.count(); ++stage) {
    const auto begin = static_cast<std::ptrdiff_t>(stages.begin(stage));
    const auto end = static_cast<std::ptrdiff_t>(stages.end(stage));
    const double own = std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0);
    const std::string share =
        all > 0 ? fmt::format("{:.0f} % of the {}", 100 * own / all, balance) : "as before";
    core::log("pipeline: stage {} has {}, {} to {}, {}", stage, core::counted(end - begin, "unit"),
              units[stages.begin(stage)].name, units[stages.end(stage) - 1].name, share);
  }
}

// Returns the stages of the checkpoint that the run resumes, if it has as many of this model.
std::optional<engine::Stages> stored_stages(const Run& run, const std::vector<units::Unit>& units,
                                            int stages) {
  const std::vector<std::int64_t>& begins = run.state.stage_begins;
  if (std::ssize(begins) != stages || begins.back() >= std::ssize(units)) return std::nullopt;
  return engine::Stages(units, std::vector<std::size_t>(begins.begin(), begins.end()));
}

// Divides the units by measured time, or as the checkpoint did. run.state keeps the division.
engine::Stages stages_of_time(Run& run, const std::vector<units::Unit>& units, int count) {
  std::optional<engine::Stages> stages = stored_stages(run, units, count);
  std::vector<double> costs(units.size(), 0.0);
  if (!stages) {
    costs = measured_costs(run, units);
    stages.emplace(units, costs, count);
  }
  run.state.stage_begins.clear();
  for (int stage = 0; stage < count; ++stage) {
    run.state.stage_begins.push_back(static_cast<std::int64_t>(stages->begin(stage)));
  }
  if (run.group->rank() == 0) report(*stages, units, costs, "time");
  return *std::move(stages);
}

engine::Stages stages_of_parameters(Run& run, const std::vector<units::Unit>& units, int count) {
  const std::vector<double> costs = engine::parameter_costs(units, *run.learner.model);
  engine::Stages stages(units, costs, count);
  if (run.group->rank() == 0) report(stages, units, costs, "parameters");
  run.state.stage_begins.clear();
  return stages;
}

}  // namespace

std::unique_ptr<engine::Pipeline> make_pipeline(Run& run, const std::vector<units::Unit>& units) {
  const recipe::Parallel& asked = run.recipe.parallel;
  if (asked.pipeline == 1) {
    run.state.stage_begins.clear();
    return nullptr;
  }
  nn::Model& model = *run.learner.model;
  const core::PipelineShape shape = asked.pipeline_shape(1);
  engine::PipelineParts parts{.kind = asked.pipeline_kind(),
                              .chunks = shape.chunks,
                              .stages = asked.balance == "time"
                                            ? stages_of_time(run, units, shape.stages())
                                            : stages_of_parameters(run, units, shape.stages())};
  if (parts.kind == core::PipelineKind::kZeroBubble) {
    parts.deferred = defer_weights(model, wanted_at_once(run, units));
  }
  return std::make_unique<engine::Pipeline>(*run.mesh, std::move(parts));
}

std::unique_ptr<parallel::Placement> make_placement(Run& run, const std::vector<units::Unit>& units,
                                                    bool all_reduces) {
  std::vector<units::NamedParameter> parameters = run.learner.parameters();
  parallel::ShardingOptions sharding = sharding_of(run, units);
  if (run.pipeline) {
    keep_own(*run.pipeline, parameters);
    keep_own(*run.pipeline, sharding.frozen);
  }
  parallel::GradientExchange exchange{.seed = run.recipe.seed, .every_step = all_reduces};
  if (exchange.every_step) exchange.compress = run.recipe.compress;
  if (run.mesh->plan().experts() > 1) {
    return std::make_unique<parallel::ExpertParallel>(std::move(parameters), *run.mesh,
                                                      divide_experts(*run.learner.model, *run.mesh),
                                                      sharding, exchange);
  }
  return parallel::make_placement(std::move(parameters), *run.mesh, sharding, exchange);
}

void drop_other_stages(Run& run) {
  if (!run.pipeline) return;
  for (const auto& item : run.learner.model->named_parameters()) {
    if (!run.pipeline->has(item.key())) parallel::give_memory_back(item.value());
  }
}

void share_buffers(const Run& run, const NamedTensors& buffers) {
  if (run.pipeline) share_of_model(*run.pipeline, run.mesh->group(Axis::kPipe), buffers);
}

at::Tensor of_last_stage(const Run& run, const at::Tensor& rows) {
  if (!run.pipeline || !rows.defined()) return rows;
  dist::Group& pipe = run.mesh->group(Axis::kPipe);
  const int last = pipe.world_size() - 1;
  const std::string description = pipe.broadcast_text(
      pipe.rank() == last ? describe({{"rows", rows}}) : "", last, "evaluation scores");
  NamedTensors room;
  add_described(description, pipe.device(), room);
  const at::Tensor all = pipe.rank() == last ? rows : room.at("rows");
  if (all.numel() > 0) dist::replicate(pipe, {all}, "evaluation scores", last);
  return all;
}

}  // namespace scaletrain::train
