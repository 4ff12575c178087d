#include "lib/train/stages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "lib/engine/deferred_weights.h"
#include "lib/nn/layers/linear.h"
#include "lib/parallel/stage_parallel.h"
#include "lib/train/number_types.h"
#include "lib/train/replicate.h"

namespace scaletrain::train {
namespace {

using core::Axis;

// Of the forward of each unit, rank 0's on all ranks: what backward takes is about in proportion.
std::vector<double> measured_costs(Run& run) {
  const std::unique_ptr<parallel::Placement> placement =
      parallel::make_placement(run.learner.parameters(), *run.mesh);
  engine::Engine engine({.model = *run.learner.model,
                         .task = *run.task,
                         .precision = *run.learner.precision,
                         .placement = *placement,
                         .mesh = *run.mesh},
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

std::shared_ptr<engine::DeferredWeights> defer_weights(nn::Model& model) {
  auto deferred = std::make_shared<engine::DeferredWeights>();
  for (const auto& module : model.modules()) {
    const auto linear = std::dynamic_pointer_cast<nn::Linear>(module);
    if (linear) deferred->attach(*linear);
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

// All that any rank of the pipeline has, on each of them; of a name that several have, the first
// one's values.
void share(dist::Group& pipe, NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  const NamedTensors own = tensors;
  std::map<std::string, bool> seen;
  for (int place = 0; place < pipe.world_size(); ++place) {
    const std::string text =
        pipe.broadcast_text(place == pipe.rank() ? describe(own) : "", place, "what a stage has");
    NamedTensors described;
    add_described(text, pipe.device(), described);
    std::vector<at::Tensor> sent;
    for (auto& [name, room] : described) {
      if (!seen.emplace(name, true).second) continue;
      sent.push_back(tensors.try_emplace(name, room).first->second);
    }
    replicate(pipe, sent, "what a stage has", place);
  }
}

// Of what all ranks have, and name as the model does, the values of the stage that uses it.
void share_of_model(const engine::Pipeline& pipeline, dist::Group& pipe, NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> of_places(static_cast<std::size_t>(pipe.world_size()));
  for (const auto& [name, tensor] : tensors) {
    const std::vector<int> places = pipeline.places_of(name);
    if (!places.empty()) of_places[static_cast<std::size_t>(places.front())].push_back(tensor);
  }
  for (int place = 0; place < pipe.world_size(); ++place) {
    replicate(pipe, of_places[static_cast<std::size_t>(place)], "tensors of a stage", place);
  }
}

void report(const engine::Stages& stages, const std::vector<units::Unit>& units,
            const std::vector<double>& costs, const std::string& balance) {
  const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (int stage = 0; stage < stages.count(); ++stage) {
    const auto begin = static_cast<std::ptrdiff_t>(stages.begin(stage));
    const auto end = static_cast<std::ptrdiff_t>(stages.end(stage));
    const double own = std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0);
    core::log("pipeline: stage {} has {} units, {} to {}, {:.0f} % of the {}", stage, end - begin,
              units[stages.begin(stage)].name, units[stages.end(stage) - 1].name,
              all > 0 ? 100 * own / all : 0, balance);
  }
}

}  // namespace

std::unique_ptr<engine::Pipeline> make_pipeline(Run& run) {
  const recipe::Parallel& asked = run.recipe.parallel;
  if (asked.pipeline == 1) return nullptr;
  nn::Model& model = *run.learner.model;
  const std::vector<units::Unit> units = model.units();
  const core::PipelineShape shape = asked.pipeline_shape(1);
  const std::vector<double> costs =
      asked.balance == "time" ? measured_costs(run) : engine::parameter_costs(units, model);
  engine::PipelineParts parts{.kind = asked.pipeline_kind(),
                              .chunks = shape.chunks,
                              .stages = engine::Stages(units, costs, shape.stages())};
  if (run.group->rank() == 0) report(parts.stages, units, costs, asked.balance);
  if (parts.kind == core::PipelineKind::kZeroBubble) parts.deferred = defer_weights(model);
  return std::make_unique<engine::Pipeline>(*run.mesh, std::move(parts));
}

std::unique_ptr<parallel::Placement> make_stage_placement(Run& run) {
  std::vector<units::NamedParameter> parameters = run.learner.parameters();
  const int place = run.mesh->coordinate(Axis::kPipe);
  std::erase_if(parameters, [&](const units::NamedParameter& parameter) {
    return !run.pipeline->has(parameter.name);
  });
  for (units::NamedParameter& parameter : parameters) {
    parameter.counts = run.pipeline->places_of(parameter.name).front() == place;
  }
  return std::make_unique<parallel::StageParallel>(std::move(parameters), *run.mesh);
}

void share_stages(Run& run, checkpoint::Contents& contents) {
  if (!run.pipeline) return;
  dist::Group& pipe = run.mesh->group(Axis::kPipe);
  share_of_model(*run.pipeline, pipe, contents.model);
  share_of_model(*run.pipeline, pipe, contents.buffers);
  for (auto& [name, mean] : contents.means) {
    share_of_model(*run.pipeline, pipe, mean.tensors);
    share_of_model(*run.pipeline, pipe, mean.buffers);
  }
  share(pipe, contents.optimizer);
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
  if (all.numel() > 0) replicate(pipe, {all}, "evaluation scores", last);
  return all;
}

NamedTensors whole_optimizer_state(Run& run) {
  if (!run.pipeline) return run.learner.optimizer->state();
  return make_optimizer(run.recipe, run.learner.parameters())->state();
}

void take_optimizer_state(Run& run, const NamedTensors& whole) {
  if (!run.pipeline) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : run.learner.optimizer->state()) tensor.copy_(whole.at(name));
}

}  // namespace scaletrain::train
