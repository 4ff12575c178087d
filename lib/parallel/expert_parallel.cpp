#include "lib/parallel/expert_parallel.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lib/parallel/flat_memory.h"

namespace scaletrain::parallel {
namespace {

using units::NamedParameter;

// Gradients on their way to a sum.
struct Bucket {
  std::vector<at::Tensor> gradients;
  at::Tensor flat;
  dist::Pending pending;
};

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

// Those of `lists` in the order in which `all` names them.
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
  for (auto& [name, one] : by_name) result.push_back(std::move(one));  // not trained
  return result;
}

}  // namespace

ExpertParallel::ExpertParallel(std::vector<NamedParameter> parameters, const dist::Mesh& mesh,
                               const ExpertPlaces& places, const Sharding& sharding)
    : mesh_(mesh) {
  std::vector<NamedParameter> others;
  for (NamedParameter& parameter : parameters) {
    const auto place = places.find(parameter.name);
    if (place == places.end()) {
      others.push_back(parameter);
      continue;
    }
    if (parameter.shape.empty()) parameter.shape = parameter.tensor.sizes().vec();
    (place->second == mesh.experts().rank() ? experts_ : elsewhere_).push_back(parameter);
  }
  others_ = make_placement(std::move(others), mesh, sharding);
  buckets_ = make_layout(tensors_of(experts_));

  // Of the replicas that share the experts, the first one counts what all of them have.
  const bool is_first = mesh.experts().rank() < mesh.size(core::Axis::kShard);
  const auto counted_once = [is_first](std::vector<NamedParameter> list) {
    for (NamedParameter& one : list) one.counts = one.counts && is_first;
    return list;
  };
  const std::vector<NamedParameter> owned = counted_once(others_->owned());
  const std::vector<NamedParameter> cut = counted_once(others_->parts());
  std::vector<NamedParameter> absent = elsewhere_;
  for (NamedParameter& one : absent) {
    one.tensor = at::empty({0}, one.tensor.options().requires_grad(false));
  }
  owned_ = in_order(parameters, {&owned, &experts_});
  parts_ = in_order(parameters, {&cut, &experts_, &absent});
}

void ExpertParallel::start(const BucketLayout& saved) {
  for (const NamedParameter& parameter : elsewhere_) give_memory_back(parameter.tensor);
  others_->start(saved);
}

void ExpertParallel::zero_grad() {
  others_->zero_grad();
  for (const NamedParameter& parameter : experts_) parameter.tensor.mutable_grad().reset();
}

// All ranks' losses are weighed for a mean over the data coordinates.
void ExpertParallel::exchange_rest() {
  others_->exchange_rest();
  const at::NoGradGuard no_grad;
  dist::Group& group = mesh_.same_experts();
  std::vector<Bucket> buckets;
  buckets.reserve(buckets_.size());
  for (const std::vector<std::int64_t>& numbers : buckets_) {
    Bucket& bucket = buckets.emplace_back();
    std::vector<at::Tensor> parts;
    for (const std::int64_t number : numbers) {
      const at::Tensor& parameter = experts_[static_cast<std::size_t>(number)].tensor;
      if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
      bucket.gradients.push_back(parameter.grad());
      bucket.gradients.back().div_(mesh_.plan().readers());
      parts.push_back(parameter.grad().reshape({-1}));
    }
    if (group.world_size() == 1) continue;
    bucket.flat = at::cat(parts);
    exchanged_bytes_ += static_cast<std::int64_t>(bucket.flat.nbytes());
    bucket.pending = group.all_reduce_sum(bucket.flat, "gradients of the experts");
  }
  for (Bucket& bucket : buckets) {
    if (!bucket.flat.defined()) continue;
    bucket.pending.wait();
    std::int64_t begin = 0;
    for (const at::Tensor& gradient : bucket.gradients) {
      gradient.copy_(bucket.flat.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      begin += gradient.numel();
    }
  }
}

std::int64_t ExpertParallel::exchanged_bytes() const {
  return others_->exchanged_bytes() + exchanged_bytes_;
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
