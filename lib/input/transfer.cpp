#include "lib/input/transfer.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace scaletrain::input {

Transfer::Transfer(at::Device device) : device_(device) {
  if (device_.is_cpu()) return;
  copies_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
}

std::vector<at::Tensor> Transfer::operator()(std::vector<at::Tensor> host,
                                             std::span<const std::byte> block) const {
  if (device_.is_cpu()) return host;
  const c10::Stream compute = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  std::vector<at::Tensor> copies;
  copies.reserve(host.size());
  c10::Event copied(device_.type());
  {
    const c10::StreamGuard guard(*copies_);
    for (const at::Tensor& tensor : host) {
      copies.push_back(tensor.to(device_, /*non_blocking=*/true));
      copies.back().record_stream(compute);
    }
    copied.record(*copies_);
  }
  copied.block(compute);
  auto* const begin = const_cast<std::byte*>(block.data());
  const bool is_pinned =
      at::getHostAllocator(device_.type())->record_event(begin, /*ctx=*/nullptr, *copies_);
  if (!is_pinned) copied.synchronize();  // nobody else keeps the memory until then
  return copies;
}

}  // namespace scaletrain::input
