#include "lib/parallel/stage_parallel.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

namespace scaletrain::parallel {
namespace {

// Gradients on their way to a mean.
struct Bucket {
  std::vector<at::Tensor> gradients;
  at::Tensor flat;
  dist::Pending pending;
};

}  // namespace

StageParallel::StageParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh)
    : mesh_(mesh), parameters_(std::move(parameters)) {}

void StageParallel::start(const BucketLayout& /*saved*/) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters_.size());
  for (const units::NamedParameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  buckets_ = make_layout(tensors);
}

void StageParallel::zero_grad() {
  for (units::NamedParameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

void StageParallel::exchange_rest() {
  dist::Group& group = mesh_.data();
  if (group.world_size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<Bucket> buckets;
  buckets.reserve(buckets_.size());
  for (const std::vector<std::int64_t>& numbers : buckets_) {
    Bucket& bucket = buckets.emplace_back();
    std::vector<at::Tensor> parts;
    for (const std::int64_t number : numbers) {
      const at::Tensor& parameter = parameters_[static_cast<std::size_t>(number)].tensor;
      // On another rank it may have one.
      if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
      bucket.gradients.push_back(parameter.grad());
      parts.push_back(parameter.grad().reshape({-1}));
    }
    bucket.flat = at::cat(parts).div_(group.world_size());
    bucket.pending = group.all_reduce_sum(bucket.flat, "gradients of a stage");
  }
  for (Bucket& bucket : buckets) {
    bucket.pending.wait();
    std::int64_t begin = 0;
    for (const at::Tensor& gradient : bucket.gradients) {
      gradient.copy_(bucket.flat.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      begin += gradient.numel();
    }
  }
}

}  // namespace scaletrain::parallel
