#include "lib/parallel/late_mean.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lib/core/process/time_ledger.h"

namespace scaletrain::parallel {
namespace {

// A bucket of gradients whose all-reduce is under way.
struct Bucket {
  std::vector<at::Tensor> gradients;
  at::Tensor flat;
  dist::Pending pending;
  BucketExchange* exchange = nullptr;  // null: not compressed

  void wait() {
    if (exchange == nullptr) return pending.wait();
    const core::TimeScope time(core::TimeRow::kCommunication);
    exchange->go_on();
    exchange->finish();
  }
};

BucketLayout layout_of(const std::vector<units::NamedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters.size());
  for (const units::NamedParameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return make_layout(tensors);
}

}  // namespace

LateMean::LateMean(std::vector<units::NamedParameter> parameters, dist::Group& group, int count,
                   const char* name, std::unique_ptr<Compression> compression)
    : parameters_(std::move(parameters)),
      group_(group),
      divisor_(compression ? count / group.world_size() : count),
      name_(name),
      buckets_(layout_of(parameters_)),
      compression_(std::move(compression)) {
  if (!compression_) return;
  for (const auto& numbers : buckets_) compression_->add(slots_of(parameters_, numbers));
}

void LateMean::begin_step(std::int64_t step) {
  if (compression_) compression_->begin_step(step);
}

void LateMean::end_step(const at::Tensor& found_inf) {
  if (compression_) compression_->end_step(found_inf);
}

units::Shards LateMean::state() { return compression_ ? compression_->state() : units::Shards(); }

core::GradientPeak LateMean::gradient_peak() const {
  std::int64_t bytes = 0;
  for (const units::NamedParameter& parameter : parameters_) {
    bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
  return core::late_gradients(bytes, group_.world_size() > 1);
}

void LateMean::zero_grad() {
  for (units::NamedParameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

void LateMean::exchange() {
  if (group_.world_size() == 1 && divisor_ == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<Bucket> buckets;
  buckets.reserve(buckets_.size());
  for (const std::vector<std::int64_t>& numbers : buckets_) {
    Bucket& bucket = buckets.emplace_back();
    std::vector<at::Tensor> parts;
    for (const std::int64_t number : numbers) {
      const at::Tensor& parameter = parameters_[static_cast<std::size_t>(number)].tensor;
      // Another rank may have a gradient, and all ranks must send the same bucket.
      if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
      bucket.gradients.push_back(parameter.grad());
      if (divisor_ > 1) bucket.gradients.back().div_(divisor_);
      parts.push_back(parameter.grad().reshape({-1}));
    }
    if (group_.world_size() == 1) continue;
    bucket.flat = at::cat(parts);
    if (compression_) {
      bucket.exchange = (*compression_->exchanges().now)[buckets.size() - 1].get();
      bucket.exchange->begin(bucket.flat);
      continue;
    }
    exchanged_bytes_ += static_cast<std::int64_t>(bucket.flat.nbytes());
    bucket.pending = group_.all_reduce_sum(bucket.flat, name_);
  }
  for (Bucket& bucket : buckets) {
    if (!bucket.flat.defined()) continue;
    bucket.wait();
    std::int64_t begin = 0;
    for (const at::Tensor& gradient : bucket.gradients) {
      gradient.copy_(bucket.flat.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      begin += gradient.numel();
    }
  }
}

}  // namespace scaletrain::parallel
