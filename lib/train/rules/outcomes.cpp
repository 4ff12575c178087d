#include "lib/train/rules/outcomes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace scaletrain::train {

struct LateReads::Message {
  at::Tensor host;                   // pinned for a device
  std::optional<c10::Event> copied;  // recorded after the copy, on a device
};

LateReads::LateReads(dist::Group& group, bool late) : group_(group), late_(late) {}

// LibTorch does not reuse a pinned buffer while a copy to it is running.
LateReads::~LateReads() = default;

std::unique_ptr<LateReads::Message> LateReads::free_message(std::int64_t size) {
  while (!free_.empty()) {
    std::unique_ptr<Message> message = std::move(free_.back());
    free_.pop_back();
    if (message->host.numel() == size) return message;
  }
  const bool device = !group_.device().is_cpu();
  auto message = std::make_unique<Message>();
  message->host = at::empty({size}, at::TensorOptions(at::kDouble).pinned_memory(device));
  if (device) message->copied.emplace(group_.device().type());
  return message;
}

void LateReads::send(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  std::unique_ptr<Message> message = free_message(values.numel());
  message->host.copy_(values, /*non_blocking=*/true);
  if (message->copied) {
    const at::Device device = group_.device();
    message->copied->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  on_their_way_.push_back(std::move(message));
}

std::vector<double> LateReads::take() {
  std::unique_ptr<Message> message = std::move(on_their_way_.front());
  on_their_way_.pop_front();
  if (message->copied) message->copied->synchronize();
  group_.check();
  const auto* const values = message->host.const_data_ptr<double>();
  std::vector<double> result(values, values + message->host.numel());
  free_.push_back(std::move(message));
  return result;
}

}  // namespace scaletrain::train
