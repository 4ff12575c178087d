#include "lib/checkpoint/host_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <iterator>
#include <utility>

#include "lib/checkpoint/tensors.h"

namespace scaletrain::checkpoint {
namespace {

bool fits(const at::Tensor& copy, const at::Tensor& tensor) {
  const bool has_order =
      !tensor.is_non_overlapping_and_dense() || copy.strides() == tensor.strides();
  return copy.scalar_type() == tensor.scalar_type() && copy.sizes() == tensor.sizes() &&
         has_order && copy.is_pinned() == tensor.is_cuda();
}

at::Tensor like(const at::Tensor& tensor) {
  return at::empty_like(
      tensor,
      tensor.options().device(at::kCPU).pinned_memory(tensor.is_cuda()).requires_grad(false));
}

// Makes `copies` hold what `tensors` does.
void copy(const Tensors& tensors, Tensors& copies) {
  for (auto one = copies.begin(); one != copies.end();) {
    one = tensors.contains(one->first) ? std::next(one) : copies.erase(one);
  }
  for (const auto& [name, tensor] : tensors) {
    at::Tensor& to = copies[name];
    if (!to.defined() || !fits(to, tensor)) to = like(tensor);
    to.copy_(tensor, /*non_blocking=*/true);
  }
}

void copy(const Contents& contents, Contents& copies) {
  copy(contents.model, copies.model);
  copy(contents.buffers, copies.buffers);
  copy(contents.optimizer, copies.optimizer);
  std::map<std::string, MeanContents> means;
  for (const auto& [name, mean] : contents.means) {
    MeanContents& to = means[name] = std::move(copies.means[name]);
    copy(mean.tensors, to.tensors);
    copy(mean.buffers, to.buffers);
  }
  copies.means = std::move(means);
  copies.state = contents.state;
  copies.classes = contents.classes;
  copies.recipe = contents.recipe;
  copies.is_share = contents.is_share;
  copies.pieces = contents.pieces;
  copies.all_bytes = contents.all_bytes;
}

// Of the first tensor that is not the host's; the CPU where there is none.
at::Device device_of(const Contents& contents) {
  for (const Tensors* tensors : {&contents.model, &contents.optimizer}) {
    for (const auto& [name, tensor] : *tensors) {
      if (!tensor.is_cpu()) return tensor.device();
    }
  }
  return at::kCPU;
}

}  // namespace

void HostCopies::take(const Contents& contents) {
  const at::NoGradGuard no_grad;
  const at::Device device = device_of(contents);
  if (device.is_cpu()) {
    copy(contents, copies_);
    return;
  }
  const c10::impl::VirtualGuardImpl impl(device.type());
  const c10::Stream compute = impl.getStream(device);
  const c10::Stream copies = impl.getStreamFromGlobalPool(device);
  c10::Event computed(device.type());
  computed.record(compute);
  computed.block(copies);
  const c10::StreamGuard guard(copies);
  copy(contents, copies_);  // queues it
  arrived_.emplace(device.type());
  arrived_->record(copies);
  arrived_->block(compute);  // the next update would overwrite what is read
}

const Contents& HostCopies::contents() {
  if (arrived_) arrived_->synchronize();
  return copies_;
}

}  // namespace scaletrain::checkpoint
