#include "lib/parallel/part_gather.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace scaletrain::parallel {

PartGather::PartGather(dist::Group& ranks, bool from_host) : ranks_(ranks), from_host_(from_host) {
  if (!from_host_ || ranks_.device().is_cpu()) return;
  const c10::impl::VirtualGuardImpl device(ranks_.device().type());
  copies_ = device.getStreamFromGlobalPool(ranks_.device());
}

at::Tensor PartGather::copy_of(const at::Tensor& part) const {
  if (!from_host_) return part.clone();
  const at::TensorOptions options(part.scalar_type());
  return at::empty(part.sizes(), options.pinned_memory(copies_.has_value())).copy_(part);
}

dist::Pending PartGather::send(const at::Tensor& whole, const at::Tensor& part) {
  const at::Tensor sent = part.to(whole.scalar_type());
  sent_bytes_ += static_cast<std::int64_t>(sent.nbytes());
  return ranks_.all_gather(whole, sent, "parameters");
}

dist::Pending PartGather::gather(const at::Tensor& whole, const at::Tensor& part,
                                 units::HostUpdate* update) {
  if (!from_host_) return send(whole, part);
  update->wait();
  std::optional<c10::StreamGuard> guard;
  if (copies_) {
    const c10::impl::VirtualGuardImpl device(copies_->device_type());
    c10::Event computed(copies_->device_type());  // work that used the memory of `whole` before
    computed.record(device.getStream(copies_->device()));
    computed.block(*copies_);
    guard.emplace(*copies_);
  }
  const at::TensorOptions type(part.scalar_type());
  const at::Tensor staged = at::empty(part.sizes(), type.device(ranks_.device()));
  staged.copy_(part, /*non_blocking=*/true);
  return send(whole, staged);
}

}  // namespace scaletrain::parallel
