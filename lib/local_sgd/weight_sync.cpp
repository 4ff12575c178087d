#include "lib/local_sgd/weight_sync.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "lib/core/log.h"

namespace scaletrain::local_sgd {
namespace {

at::Tensor flat(const std::vector<units::NamedParameter>& parameters) {
  if (parameters.empty()) return at::empty({0});
  std::vector<at::Tensor> all;
  all.reserve(parameters.size());
  for (const units::NamedParameter& parameter : parameters) {
    all.push_back(parameter.tensor.detach().reshape({-1}));
  }
  return at::cat(all);
}

// Calls visit(parameter, its slice of `values`).
template <class Visit>
void visit_parts(const std::vector<units::NamedParameter>& parameters, const at::Tensor& values,
                 const Visit& visit) {
  std::int64_t begin = 0;
  for (const units::NamedParameter& parameter : parameters) {
    const at::Tensor& tensor = parameter.tensor;
    visit(parameter, values.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

// Sets parameters to mix times themselves plus 1 - mix times `values`.
void take(const std::vector<units::NamedParameter>& parameters, const at::Tensor& values,
          double mix = 0) {
  const at::NoGradGuard no_grad;
  visit_parts(parameters, values,
              [mix](const units::NamedParameter& parameter, const at::Tensor& value) {
                const at::Tensor weights = parameter.tensor.detach();
                mix == 0 ? weights.copy_(value) : weights.lerp_(value, 1 - mix);
              });
}

}  // namespace

WeightSync::WeightSync(const recipe::Sync& sync,
                       const std::vector<units::NamedParameter>& parameters,
                       const Fragments& fragments, dist::Group& group, std::int64_t total_steps,
                       std::optional<at::ScalarType> rounded_to)
    : sync_(sync), group_(group), total_steps_(total_steps), rounded_to_(rounded_to) {
  for (const std::int64_t fragment : fragments.of_message) parts_.push_back({.fragment = fragment});
  for (const units::NamedParameter& parameter : parameters) {
    const auto message = static_cast<std::size_t>(fragments.message_of.at(parameter.name));
    parts_.at(message).parameters.push_back(parameter);
  }
  if (sync.name != "diloco") return;
  for (Part& part : parts_) {
    part.outer = flat(part.parameters);
    part.momentum = at::zeros_like(part.outer);
  }
}

void WeightSync::start() {
  if (has_resumed_) return;
  for (Part& part : parts_) {
    if (part.outer.defined()) part.outer.copy_(flat(part.parameters));
  }
}

void WeightSync::go_apart(std::int64_t steps, const std::string& host, dist::Mesh& mesh) {
  steps_ = steps;
  mesh_ = &mesh;
  if (group_.world_size() == 1) return;
  if (sync_.name == "diloco") {
    rounds_ = std::make_unique<DilocoClient>(steps, mesh, host, rounded_to_.value_or(at::kFloat));
    return;
  }
  std::vector<at::Tensor> weights;
  weights.reserve(parts_.size());
  for (const Part& part : parts_) weights.push_back(flat(part.parameters));
  fellows_ = std::make_unique<AsyncClient>(sync_, std::move(weights), steps, mesh, host);
}

// The last fragment's offset is 0, so a single fragment is synchronized after each multiple of
// sync_.steps.
bool WeightSync::is_due(const Part& part, std::int64_t steps) const {
  const std::int64_t offset = (part.fragment + 1) * sync_.steps / sync_.fragments % sync_.steps;
  return steps > 0 && steps % sync_.steps == offset;
}

std::vector<ReplicaProgress> WeightSync::places() const {
  return rounds_ ? rounds_->places() : fellows_->places();
}

bool WeightSync::shall_stop() const {
  return rounds_ ? rounds_->stop_is_asked() : fellows_ && fellows_->shall_stop();
}

bool WeightSync::is_exchanged_after(std::int64_t steps) const {
  if (rounds_ && rounds_->stops_at()) return false;
  return steps == total_steps_ || std::ranges::any_of(parts_, [&](const Part& part) {
           return is_due(part, steps - sync_.overlap);
         });
}

bool WeightSync::differs() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.differs; });
}

void WeightSync::resume() {
  has_resumed_ = true;
  for (Part& part : parts_) part.differs = always_differs();
}

void WeightSync::after_step(std::int64_t step) {
  steps_ = step + 1;
  const bool waits_for_stop = rounds_ && rounds_->stops_at();
  const bool is_end = steps_ == total_steps_;
  std::vector<Part*> due;
  for (Part& part : parts_) {
    part.differs = true;
    if (waits_for_stop) continue;
    if (is_end || is_due(part, steps_ - sync_.overlap)) end_overlap(part);
    if (!is_end && !is_due(part, steps_)) continue;
    if (is_end || sync_.overlap == 0) {
      due.push_back(&part);
    } else {
      part.sum = begin_sum(part);
    }
  }
  exchange(due);
  if (fellows_ && steps_ == total_steps_) leave(std::nullopt);
}

// With rounds a replica that has not reached the agreed step synchronizes all parts, as the
// furthest replica does.
void WeightSync::exchange_all(std::chrono::milliseconds limit) {
  if (fellows_ && steps_ == total_steps_) return;  // it has left
  if (fellows_ && fellows_->hosts()) fellows_->stop_all();
  std::vector<Part*> due;
  for (Part& part : parts_) {
    end_overlap(part);
    const bool is_behind = rounds_ && steps_ < rounds_->stops_at().value_or(steps_);
    if (part.differs || is_behind) due.push_back(&part);
  }
  if (rounds_) {
    if (rounds_->stops_at()) exchange_in_rounds(due);
    return;
  }
  exchange(due);
  if (fellows_) leave(limit);
}

// Rank 0's replica continues with the final global weights.
void WeightSync::leave(std::optional<std::chrono::milliseconds> limit) {
  fellows_->leave(steps_ == total_steps_);
  if (mesh_->replica() != 0) return;
  if (fellows_->hosts() && !fellows_->await_all(limit)) {
    core::warn("some replicas were not heard of within {:g} s: what they learned last is not there",
               std::chrono::duration<double>(*limit).count());
  }
  if (fellows_->hosts()) fellows_->close();
  mesh_->world().barrier("rank 0 has heard of all replicas");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    take(parts_[i].parameters, fellows_->fetch(static_cast<std::int64_t>(i)));
  }
}

void WeightSync::exchange(const std::vector<Part*>& due) {
  if (due.empty()) return;
  const at::NoGradGuard no_grad;
  if (rounds_) return exchange_in_rounds(due);
  if (!fellows_) {
    for (Part* const part : due) go_on_from(*part, mean_of(begin_sum(*part)));
    return;
  }
  std::map<std::int64_t, at::Tensor> weights;
  for (Part* const part : due) {
    const auto [given, is_new] = weights.emplace(part - parts_.data(), flat(part->parameters));
    exchanged_bytes_ += static_cast<std::int64_t>(given->second.nbytes());
  }
  const std::vector<at::Tensor> means = fellows_->exchange(weights, steps_);
  for (std::size_t i = 0; i < due.size(); ++i) go_on_from(*due[i], means[i]);
}

// Communicates one part at a time, so that the hub holds one part of each replica.
void WeightSync::exchange_in_rounds(const std::vector<Part*>& due) {
  for (Part* const part : due) {
    const at::Tensor own = given(*part);
    std::optional<at::Tensor> mean = rounds_->mean_of(part - parts_.data(), own, steps_);
    if (!mean) return;
    exchanged_bytes_ += static_cast<std::int64_t>(own.nbytes());
    go_on_from(*part, std::move(*mean));
  }
  rounds_->meet(steps_);
}

at::Tensor WeightSync::given(const Part& part) const {
  at::Tensor weights = flat(part.parameters);
  return rounded_to_ ? (part.outer - weights).to(*rounded_to_) : weights;
}

WeightSync::Sum WeightSync::begin_sum(const Part& part) {
  const at::NoGradGuard no_grad;
  Sum sum{.values = given(part), .pending = dist::Pending()};
  if (group_.world_size() > 1 && !part.parameters.empty()) {
    exchanged_bytes_ += static_cast<std::int64_t>(sum.values.nbytes());
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
  go_on_from(part, mean_of(*std::exchange(part.sum, std::nullopt)), sync_.mix);
  part.differs = true;
}

void WeightSync::go_on_from(Part& part, at::Tensor mean, double mix) {
  part.differs = false;
  if (part.outer.defined()) {
    mean = mean.to(part.outer.options());
    const at::Tensor delta = rounded_to_ ? mean : part.outer - mean;
    part.momentum.mul_(sync_.outer.momentum).add_(delta);
    part.outer.sub_(delta.add_(part.momentum, sync_.outer.momentum), sync_.outer.lr);
    mean = part.outer;
  }
  take(part.parameters, mean, mix);
}

std::map<std::string, at::Tensor> WeightSync::state() const {
  std::map<std::string, at::Tensor> result;
  for (const Part& part : parts_) {
    if (!part.outer.defined()) continue;
    const auto add = [&](const std::string& what, const at::Tensor& values) {
      visit_parts(part.parameters, values,
                  [&](const units::NamedParameter& parameter, const at::Tensor& value) {
                    result.emplace(what + "/" + parameter.name, value);
                  });
    };
    add("outer_weights", part.outer);
    add("outer_momentum", part.momentum);
  }
  return result;
}

}  // namespace scaletrain::local_sgd
