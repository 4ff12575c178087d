#include "lib/local_sgd/weight_sync.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

namespace scaletrain::local_sgd {
namespace {

// Calls visit(parameter, its slice of `values`).
template <class Visit>
void visit_slices(const std::vector<units::NamedParameter>& parameters, const at::Tensor& values,
                  const Visit& visit) {
  std::int64_t begin = 0;
  for (const units::NamedParameter& parameter : parameters) {
    const at::Tensor& tensor = parameter.tensor;
    visit(parameter, values.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

constexpr const char* kAsyncNotice =
    "async: each replica synchronizes weights at its own time, so neither bits nor sample order "
    "can be reproduced; loss and gradient norm are those of replica 0";

ReplicaTraits traits_of(const LocalSgdOptions& options, const dist::Mesh& mesh) {
  const recipe::Sync& sync = options.sync;
  const bool is_diloco = sync.name == "diloco", is_async = options.decoupled && sync.is_async();
  return {// A resume gives all async replicas the optimizer state of rank 0's.
          .local_optimizer = mesh.plan().model_copies() > 1 && !is_async,
          // No collective spans decoupled replicas.
          .local_loss_scale = options.decoupled && is_diloco,
          .local_weights = sync.fragments > 1 || sync.overlap > 0,
          .steps_alone = true,
          .has_outer_optimizer = is_diloco,
          .leads = !options.decoupled || mesh.replica() == 0,
          .evaluated_weights = is_diloco ? "outer" : "mean",
          .reported_replica = options.decoupled ? std::optional(0) : std::nullopt,
          .notice = is_async ? kAsyncNotice : ""};
}

}  // namespace

WeightSync::WeightSync(LocalSgdOptions options,
                       const std::vector<units::NamedParameter>& parameters,
                       const Fragments& fragments, dist::Mesh& mesh)
    : options_(std::move(options)), mesh_(mesh), group_(mesh.replicas()) {
  for (const std::int64_t fragment : fragments.of_message) {
    parts_.push_back({.number = std::ssize(parts_), .fragment = fragment});
  }
  for (const units::NamedParameter& parameter : parameters) {
    const auto message = static_cast<std::size_t>(fragments.message_of.at(parameter.name));
    parts_.at(message).parameters.push_back(parameter);
  }
  traits_ = traits_of(options_, mesh);
  if (!traits_.has_outer_optimizer) return;
  for (Part& part : parts_) {
    part.outer = weights_of(part);
    part.momentum = at::zeros_like(part.outer);
  }
}

units::Shards WeightSync::state() const {
  units::Shards result;
  for (const Part& part : parts_) {
    if (!part.outer.defined()) continue;
    const auto add = [&](const std::string& prefix, const at::Tensor& values) {
      visit_slices(part.parameters, values,
                   [&](const units::NamedParameter& parameter, const at::Tensor& value) {
                     result.emplace(prefix + parameter.name, parameter.state(value));
                   });
    };
    add("outer_weights/", part.outer);
    add("outer_momentum/", part.momentum);
  }
  return result;
}

void WeightSync::resume() {
  has_resumed_ = true;
  for (Part& part : parts_) part.differs = traits_.local_weights;
}

void WeightSync::start() {
  if (has_resumed_) return;
  for (Part& part : parts_) {
    if (part.outer.defined()) part.outer.copy_(weights_of(part));
  }
}

// The root mean square over the replicas. Not finite if any replica's norm is not, so that all
// replicas that share collectives skip a step or none does.
at::Tensor WeightSync::mean_norm(const at::Tensor& /*norm*/, const at::Tensor& squares) {
  group_.all_reduce_sum(squares, "norms of the replicas").wait();
  return (squares / group_.world_size()).sqrt();
}

// The last fragment's offset is 0, so a single fragment is synchronized after each multiple of
// sync.steps.
bool WeightSync::is_due(const Part& part, std::int64_t steps) const {
  const recipe::Sync& sync = options_.sync;
  const std::int64_t offset = (part.fragment + 1) * sync.steps / sync.fragments % sync.steps;
  return steps > 0 && steps % sync.steps == offset;
}

bool WeightSync::is_synchronized() const {
  return steps_ == options_.total_steps || std::ranges::any_of(parts_, [this](const Part& part) {
           return is_due(part, steps_ - options_.sync.overlap);
         });
}

bool WeightSync::weights_differ() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.differs; });
}

void WeightSync::count_step(std::int64_t step) {
  steps_ = step + 1;
  for (Part& part : parts_) part.differs = true;
}

void WeightSync::after_step(std::int64_t step) {
  count_step(step);
  const std::int64_t overlap = options_.sync.overlap;
  const bool is_end = steps_ == options_.total_steps;
  Parts due;
  for (Part& part : parts_) {
    if (is_end || is_due(part, steps_ - overlap)) end_overlap(part);
    if (!is_end && !is_due(part, steps_)) continue;
    if (is_end || overlap == 0) {
      due.push_back(&part);
    } else {
      part.sum = begin_sum(part);
    }
  }
  if (!due.empty()) synchronize(due);
}

void WeightSync::stop() {
  options_.beat.enter(core::Phase::kWaiting);
  for (Part& part : parts_) end_overlap(part);
  synchronize(differing_parts());
}

WeightSync::Parts WeightSync::differing_parts() {
  Parts result;
  for (Part& part : parts_) {
    if (part.differs) result.push_back(&part);
  }
  return result;
}

void WeightSync::synchronize(const Parts& due) {
  const at::NoGradGuard no_grad;
  for (Part* const part : due) continue_from(*part, mean_of(begin_sum(*part)));
}

at::Tensor WeightSync::weights_of(const Part& part) const {
  if (part.parameters.empty()) return at::empty({0});
  std::vector<at::Tensor> all;
  all.reserve(part.parameters.size());
  for (const units::NamedParameter& parameter : part.parameters) {
    all.push_back(parameter.tensor.detach().reshape({-1}));
  }
  return at::cat(all);
}

at::Tensor WeightSync::contribution(const Part& part) const {
  at::Tensor weights = weights_of(part);
  return options_.rounded_to ? (part.outer - weights).to(*options_.rounded_to) : weights;
}

WeightSync::Sum WeightSync::begin_sum(const Part& part) {
  const at::NoGradGuard no_grad;
  Sum sum{.values = contribution(part), .pending = dist::Pending()};
  if (group_.world_size() > 1 && !part.parameters.empty()) {
    communicated_bytes_ += static_cast<std::int64_t>(sum.values.nbytes());
    sum.pending = group_.all_reduce_sum(sum.values, "weights of the replicas");
  }
  return sum;
}

at::Tensor WeightSync::mean_of(Sum sum) {
  sum.pending.wait();
  return group_.world_size() == 1 ? sum.values : sum.values.div_(group_.world_size());
}

void WeightSync::end_overlap(Part& part) {
  if (!part.sum) return;
  const at::NoGradGuard no_grad;
  continue_from(part, mean_of(*std::exchange(part.sum, std::nullopt)), options_.sync.mix);
  part.differs = true;
}

void WeightSync::continue_from(Part& part, at::Tensor mean, double mix) {
  part.differs = false;
  if (part.outer.defined()) {
    const recipe::OuterOptimizer& outer = options_.sync.outer;
    mean = mean.to(part.outer.options());
    const at::Tensor delta = options_.rounded_to ? mean : part.outer - mean;
    part.momentum.mul_(outer.momentum).add_(delta);
    part.outer.sub_(delta.add_(part.momentum, outer.momentum), outer.lr);
    mean = part.outer;
  }
  set_weights(part, mean, mix);
}

void WeightSync::set_weights(const Part& part, const at::Tensor& values, double mix) const {
  const at::NoGradGuard no_grad;
  visit_slices(part.parameters, values,
               [mix](const units::NamedParameter& parameter, const at::Tensor& value) {
                 const at::Tensor weights = parameter.tensor.detach();
                 mix == 0 ? weights.copy_(value) : weights.lerp_(value, 1 - mix);
               });
}

}  // namespace scaletrain::local_sgd
