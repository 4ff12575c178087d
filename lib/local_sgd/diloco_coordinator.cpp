#include "lib/local_sgd/diloco_coordinator.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

DilocoCoordinator::DilocoCoordinator(HubRanks hub, std::int64_t steps, at::ScalarType type)
    : Coordinator(hub, steps), type_(type), states_(static_cast<std::size_t>(hub.count())) {}

template <class Has>
bool DilocoCoordinator::all_active(const Has& has) const {
  return std::ranges::all_of(ranks_, [&](const Rank& one) { return !one.is_active || has(one); });
}

void DilocoCoordinator::handle(int rank, dist::HubMessage message, const Send& send) {
  switch (message.kind) {
    case kRequest:
      return forward_request(message.number, send);
    case kState:
      states(rank).tensors[message.number] = std::move(message.body);
      return;
    case kStatesSent:
      states(rank).is_complete = true;
      return;
    case kGiveUp:
      return give_up();
  }
}

void DilocoCoordinator::forward_request(std::int32_t request, const Send& send) {
  states_.assign(states_.size(), {});
  for (int rank = hub_.places; rank < hub_.count(); ++rank) {
    if (at(rank).is_active) send(rank, {.kind = kRequest, .number = request});
  }
}

// Drops the replicas that rank 0 waits for. While a stop is requested no synchronization ends, and
// replicas that have sent their step wait as rank 0 does.
void DilocoCoordinator::give_up() {
  const Rank& first = ranks_.front();
  for (int rank = hub_.places; rank < hub_.count(); ++rank) {
    const Rank& one = at(rank);
    const bool is_behind =
        (!first.parts.empty() && one.parts.empty()) || (first.synchronizes && !one.synchronizes);
    const bool is_awaited = (stop_ == Stop::kRequested ? !one.stop : is_behind) ||
                            (first.awaits == kAwaitStates && !states(rank).is_complete) ||
                            first.awaits == kAwaitAll;
    if (one.is_active && is_awaited) drop(hub_.replica(rank));
  }
}

void DilocoCoordinator::advance(const Send& send) {
  if (stop_ == Stop::kNone) request_stop(send);
  if (stop_ == Stop::kRequested) answer_stop(send);
  if (stop_ != Stop::kRequested) {
    answer_parts(send);
    answer_synchronize(send);
  }
  answer_states(send);
}

void DilocoCoordinator::request_stop(const Send& send) {
  if (all_active([](const Rank& one) { return !one.stop; })) return;
  stop_ = Stop::kRequested;
  for (int rank = 0; rank < hub_.count(); ++rank) {
    if (at(rank).is_active && !at(rank).stop) send(rank, {.kind = kStopRequested});
  }
}

void DilocoCoordinator::answer_stop(const Send& send) {
  if (!all_active([](const Rank& one) { return one.stop.has_value(); })) return;
  stop_ = Stop::kAgreed;
  std::int64_t furthest = 0;
  for (const Rank& one : ranks_) furthest = std::max(furthest, one.stop.value_or(0));
  for (int rank = 0; rank < hub_.count(); ++rank) {
    at(rank).parts.clear();
    at(rank).synchronizes.reset();
    if (at(rank).is_active) send(rank, {.kind = kStopStep, .step = furthest});
  }
}

void DilocoCoordinator::answer_parts(const Send& send) {
  if (!all_active([](const Rank& one) { return !one.parts.empty(); })) return;
  for (int place = 0; place < hub_.places; ++place) answer_part(place, send);
}

void DilocoCoordinator::answer_part(int place, const Send& send) {
  const at::NoGradGuard no_grad;
  at::Tensor sum;
  std::vector<int> ranks;
  for (int replica = 0; replica < hub_.replicas; ++replica) {
    const int rank = hub_.rank(replica, place);
    if (at(rank).parts.empty()) continue;
    const at::Tensor values = as_values(at(rank).parts.front().body, type_);
    sum = sum.defined() ? sum.add_(values)
                        : values.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    ranks.push_back(rank);
  }
  if (ranks.empty()) return;
  const std::vector<std::byte> mean = as_bytes(sum.to(type_).div_(std::ssize(ranks)));
  for (const int rank : ranks) {
    at(rank).parts.clear();
    send(rank, {.kind = kPart, .body = mean});
  }
}

void DilocoCoordinator::answer_synchronize(const Send& send) {
  if (!all_active([](const Rank& one) { return one.synchronizes.has_value(); })) return;
  for (int rank = 0; rank < hub_.count(); ++rank) {
    const auto step = std::exchange(at(rank).synchronizes, std::nullopt);
    if (!step) continue;
    set_steps(hub_.replica(rank), *step);
    send(rank, {.kind = kSynchronize});
  }
}

// Forwards the tensors to the ranks of rank 0's replica, each to its place. A replica with an
// incomplete rank is left out on all ranks.
void DilocoCoordinator::answer_states(const Send& send) {
  if (!all_of(0, [](const Rank& one) { return one.awaits == kAwaitStates; })) return;
  for (int rank = hub_.places; rank < hub_.count(); ++rank) {
    if (at(rank).is_active && !states(rank).is_complete) return;
  }
  for (int replica = 1; replica < hub_.replicas; ++replica) {
    const auto first = states_.begin() + hub_.rank(replica, 0);
    const bool is_complete =
        std::all_of(first, first + hub_.places, [](const States& one) { return one.is_complete; });
    for (int place = 0; place < hub_.places; ++place) {
      const States one = std::exchange(states(hub_.rank(replica, place)), {});
      for (const auto& [number, bytes] : one.tensors) {
        if (!is_complete) break;
        send(place, {.kind = kState, .number = number, .step = replica, .body = bytes});
      }
    }
  }
  for (int place = 0; place < hub_.places; ++place) {
    at(place).awaits = 0;
    send(place, {.kind = kAwaitStates});
  }
}

}  // namespace scaletrain::local_sgd
