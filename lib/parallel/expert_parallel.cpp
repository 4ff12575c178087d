#include "lib/parallel/expert_parallel.h"

#include <ATen/ops/empty.h>

#include <map>
#include <string>
#include <utility>

#include "lib/parallel/flat_memory.h"

namespace scaletrain::parallel {
namespace {

using units::NamedParameter;

// Merges `lists` in the order of `all`.
std::vector<NamedParameter> in_order(
    const std::vector<NamedParameter>& all,
    std::initializer_list<const std::vector<NamedParameter>*> lists) {
  std::map<std::string, NamedParameter> by_name;
  for (const auto* const list : lists) {
    for (const NamedParameter& one : *list) by_name.emplace(one.name, one);
  }
  std::vector<NamedParameter> result;
  for (const NamedParameter& one : all) {
    const auto found = by_name.find(one.name);
    if (found == by_name.end()) continue;
    result.push_back(std::move(found->second));
    by_name.erase(found);
  }
  for (auto& [name, one] : by_name) result.push_back(std::move(one));  // frozen parameters
  return result;
}

}  // namespace

ExpertParallel::ExpertParallel(std::vector<NamedParameter> parameters, const dist::Mesh& mesh,
                               const ExpertPlaces& places, const ShardingOptions& sharding,
                               const GradientExchange& exchange) {
  std::vector<NamedParameter> others, own;
  for (NamedParameter& parameter : parameters) {
    const auto place = places.find(parameter.name);
    if (place == places.end()) {
      others.push_back(parameter);
      continue;
    }
    (place->second == mesh.experts().rank() ? own : elsewhere_).push_back(parameter);
  }
  others_ = make_placement(std::move(others), mesh, sharding, exchange);

  // Parameters that all replicas of the group hold are counted by its first replica only.
  const bool is_first = mesh.experts().rank() < mesh.size(core::Axis::kShard);
  const auto counted_once = [is_first](std::vector<NamedParameter> list) {
    for (NamedParameter& one : list) one.counts = one.counts && is_first;
    return list;
  };
  const std::vector<NamedParameter> owned = counted_once(others_->owned());
  const std::vector<NamedParameter> cut = counted_once(others_->sharded_parameters());
  std::vector<NamedParameter> absent = elsewhere_;
  for (NamedParameter& one : absent) {
    one.shard = units::Shard{.shape = one.shape()};
    one.tensor = at::empty({0}, one.tensor.options().requires_grad(false));
  }
  owned_ = in_order(parameters, {&owned, &own});
  parts_ = in_order(parameters, {&cut, &own, &absent});
  // Each rank's loss is weighted for a mean over all ranks with different tokens.
  dist::Group& same = exchange.same_experts(mesh);
  mean_.emplace(std::move(own), same, exchange.count(mesh), "gradients of the experts",
                make_compression(exchange.compress, exchange.seed, same));
}

void ExpertParallel::begin_step(std::int64_t step) {
  others_->begin_step(step);
  mean_->begin_step(step);
}

void ExpertParallel::end_step(const at::Tensor& found_inf) {
  others_->end_step(found_inf);
  mean_->end_step(found_inf);
}

void ExpertParallel::start(const BucketLayout& saved) {
  for (const NamedParameter& parameter : elsewhere_) give_memory_back(parameter.tensor);
  others_->start(saved);
}

void ExpertParallel::zero_grad() {
  others_->zero_grad();
  mean_->zero_grad();
}

void ExpertParallel::exchange_rest() {
  others_->exchange_rest();
  mean_->exchange();
}

std::int64_t ExpertParallel::exchanged_bytes() const {
  return others_->exchanged_bytes() + mean_->exchanged_bytes();
}

core::GradientPeak ExpertParallel::gradient_peak(bool accumulates) const {
  core::GradientPeak peak = others_->gradient_peak(accumulates);
  peak += mean_->gradient_peak();
  return peak;
}

void ExpertParallel::enter(std::size_t unit, Pass pass) {
  if (UnitHooks* const hooks = others_->hooks()) hooks->enter(unit, pass);
}

void ExpertParallel::leave(std::size_t unit, Pass pass) {
  if (UnitHooks* const hooks = others_->hooks()) hooks->leave(unit, pass);
}

void ExpertParallel::end_backward() {
  if (UnitHooks* const hooks = others_->hooks()) hooks->end_backward();
}

}  // namespace scaletrain::parallel
