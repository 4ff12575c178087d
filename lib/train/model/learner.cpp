#include "lib/train/model/learner.h"

#include <utility>

#include "lib/core/log.h"
#include "lib/dist/device.h"
#include "lib/recipe/recipe.h"
#include "lib/train/model/freeze.h"
#include "lib/train/model/number_types.h"
#include "lib/train/rules/parameter_rules.h"

namespace scaletrain::train {

NamedTensors Learner::buffers() const {
  NamedTensors result;
  for (const auto& item : model->named_buffers()) result[item.key()] = item.value();
  return result;
}

NamedTensors Learner::tensors() const {
  NamedTensors result = buffers();
  for (const auto& item : model->named_parameters()) result[item.key()] = item.value().detach();
  return result;
}

units::Shards Learner::shards() const {
  units::Shards result;
  for (const auto& [name, tensor] : tensors()) {
    result.emplace(name, described(name, tensor).state());
  }
  return result;
}

units::NamedParameter Learner::described(const std::string& name,
                                         const at::Tensor& parameter) const {
  const auto part = parts.find(name);
  if (part == parts.end()) return {.name = name, .tensor = parameter, .counts = counts_whole};
  return {.name = name, .tensor = parameter, .shard = part->second};
}

NamedTensors Learner::evaluation_weights() const {
  return optimizer && is_trained ? optimizer->evaluation_weights() : NamedTensors();
}

bool Learner::has_evaluation_weights() const {
  return optimizer && is_trained && optimizer->has_evaluation_weights();
}

void Learner::end_training(const NamedTensors& own) {
  for (const auto& [name, weight] : evaluation_weights()) own.at(name).copy_(weight);
  is_trained = false;
}

std::vector<units::NamedParameter> Learner::parameters() const {
  const auto named = model->named_parameters();
  const std::set<std::string> outer = outer_parameters(*model);
  std::vector<units::NamedParameter> result;
  result.reserve(named.size());
  const std::string head = model->weight_rules().head;
  for (const auto& item : named) {
    if (!item.value().requires_grad()) continue;
    const auto scale = lr_scales.find(item.key());
    units::NamedParameter& parameter = result.emplace_back(described(item.key(), item.value()));
    parameter.decays = model->decays(item.key());
    parameter.is_head = !head.empty() && item.key().starts_with(head + ".");
    parameter.lr_scale = scale == lr_scales.end() ? 1 : scale->second;
    parameter.hidden = !outer.contains(item.key());
  }
  apply_groups(groups, result);
  return result;
}

ModelSize Learner::size() const {
  ModelSize size;
  for (const auto& item : model->named_parameters()) {
    const auto shape = described(item.key(), item.value()).shape();
    (item.value().requires_grad() ? size.trained : size.frozen) += format::element_count(shape);
  }
  return size;
}

Learner build_learner(const recipe::Recipe& recipe, at::Device device, const Length& length,
                      std::int64_t global_batch, const nn::Factories& models,
                      const dist::Mesh* mesh, Values values) {
  Learner learner;
  PartOfModel part = make_part(recipe, mesh, models, values);
  learner.model = std::move(part.model);
  learner.parts = std::move(part.parts);
  learner.counts_whole = mesh == nullptr || mesh->coordinate(core::Axis::kTensor) == 0;
  learner.model->to(device);
  freeze(recipe.model, *learner.model);
  learner.lr_scales = lr_scales(recipe.optimizer.layer_decay, *learner.model);
  learner.groups = recipe.optimizer.groups;
  learner.precision =
      precision::make_precision(recipe.precision, {device, dist::compute_capability(device)});
  convert_weights(*learner.model, *learner.precision, values == Values::kBlank);
  set_linear_products(*learner.model, *learner.precision, recipe.precision);
  learner.schedule = std::make_unique<optim::Schedule>(
      recipe.schedule, optim::scaled_lr(recipe.optimizer, global_batch),
      optim::ScheduleSpan{.total_steps = length.schedule_end(),
                          .steps_per_epoch = length.steps_per_epoch});
  return learner;
}

void warn_of_warmup(const recipe::Recipe& recipe, const Length& length) {
  if (!recipe.schedule.warmup) return;
  const std::int64_t total = length.schedule_end();
  const std::int64_t steps = optim::duration_steps(*recipe.schedule.warmup, length.steps_per_epoch);
  if (steps <= total) return;
  core::warn(
      "the warmup of {} steps is longer than the training of {}: the learning rate never "
      "reaches its peak",
      steps, total);
}

}  // namespace scaletrain::train
