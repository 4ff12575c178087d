#include "lib/local_sgd/diloco_coordinator.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

DilocoCoordinator::DilocoCoordinator(HubRanks ranks, std::shared_ptr<Membership> membership,
                                     at::ScalarType type)
    : hub_(ranks),
      membership_(std::move(membership)),
      type_(type),
      ranks_(static_cast<std::size_t>(ranks.count())),
      states_(static_cast<std::size_t>(ranks.count())) {}

void DilocoCoordinator::received(int rank, dist::HubMessage message, const Send& send) {
  Rank& one = at(rank);
  if (!one.is_active && message.kind != kAwaitAll) return;  // it was given up
  States& states = states_[static_cast<std::size_t>(rank)];
  switch (message.kind) {
    case kPart:
      one.part = std::move(message);
      break;
    case kSynchronize:
      one.synchronizes = message.step;
      break;
    case kStop:
      one.stop = message.step;
      if (stop_ == Stop::kNone) request_stop(send);
      break;
    case kRequest:
      states_.assign(states_.size(), {});
      requests_.push_back(message.number);
      break;
    case kReadRequest:
      one.reads_request = message.step;
      break;
    case kState:
      states.tensors[message.number] = std::move(message.body);
      return;
    case kStatesSent:
      states.is_complete = true;
      break;
    case kAwaitStates:
      one.waits_for_states = true;
      break;
    case kAwaitAll:
      one.waits_for_all = true;
      break;
    case kGiveUp:
      give_up();
      break;
    case kLeave:
      leave(rank, send);
      break;
  }
  advance(send);
}

// Also called when a rank that has left closes its connection.
void DilocoCoordinator::lost(int rank, const Send& send) {
  if (at(rank).has_left) return;
  membership_->lose(hub_.replica(rank));
  drop(hub_.replica(rank));
  advance(send);
}

void DilocoCoordinator::leave(int rank, const Send& send) {
  at(rank) = {.is_active = false, .has_left = true};
  send(rank, {.kind = kLeave});
  const int replica = hub_.replica(rank);
  const auto first = ranks_.begin() + hub_.rank(replica, 0);
  if (std::all_of(first, first + hub_.places, [](const Rank& one) { return one.has_left; })) {
    membership_->leave(replica);
  }
}

void DilocoCoordinator::drop(int replica) {
  for (int place = 0; place < hub_.places; ++place) {
    Rank& one = at(hub_.rank(replica, place));
    one = {.is_active = false, .has_left = one.has_left};
  }
}

void DilocoCoordinator::request_stop(const Send& send) {
  stop_ = Stop::kRequested;
  for (int rank = 0; rank < hub_.count(); ++rank) {
    if (at(rank).is_active && !at(rank).stop) send(rank, {.kind = kStopRequested});
  }
}

// Drops the replicas that rank 0 waits for. While a stop is requested no synchronization ends, and
// replicas that have sent their step wait as rank 0 does.
void DilocoCoordinator::give_up() {
  const Rank& first = ranks_.front();
  for (int rank = hub_.places; rank < hub_.count(); ++rank) {
    const Rank& one = at(rank);
    const bool is_behind = (first.part && !one.part) || (first.synchronizes && !one.synchronizes);
    const bool is_awaited =
        (stop_ == Stop::kRequested ? !one.stop : is_behind) ||
        (first.waits_for_states && !states_[static_cast<std::size_t>(rank)].is_complete) ||
        first.waits_for_all;
    if (one.is_active && is_awaited) drop(hub_.replica(rank));
  }
}

template <class Has>
bool DilocoCoordinator::all_active(const Has& has, int first) const {
  return std::all_of(ranks_.begin() + first, ranks_.end(),
                     [&](const Rank& one) { return !one.is_active || has(one); });
}

void DilocoCoordinator::advance(const Send& send) {
  answer_stop(send);
  if (stop_ != Stop::kRequested) {
    answer_parts(send);
    answer_synchronize(send);
  }
  answer_requests(send);
  answer_states(send);
  answer_others(send);
}

void DilocoCoordinator::answer_stop(const Send& send) {
  if (stop_ != Stop::kRequested) return;
  if (!all_active([](const Rank& one) { return one.stop.has_value(); })) return;
  stop_ = Stop::kAgreed;
  std::int64_t furthest = 0;
  for (const Rank& one : ranks_) furthest = std::max(furthest, one.stop.value_or(0));
  for (int rank = 0; rank < hub_.count(); ++rank) {
    at(rank).part.reset();
    at(rank).synchronizes.reset();
    if (at(rank).is_active) send(rank, {.kind = kStopStep, .step = furthest});
  }
}

void DilocoCoordinator::answer_parts(const Send& send) {
  if (!all_active([](const Rank& one) { return one.part.has_value(); })) return;
  for (int place = 0; place < hub_.places; ++place) answer_part(place, send);
}

void DilocoCoordinator::answer_part(int place, const Send& send) {
  const at::NoGradGuard no_grad;
  at::Tensor sum;
  std::int64_t count = 0;
  for (int replica = 0; replica < hub_.replicas; ++replica) {
    const Rank& one = at(hub_.rank(replica, place));
    if (!one.part) continue;
    const at::Tensor values = as_values(one.part->body, type_);
    sum = sum.defined() ? sum.add_(values)
                        : values.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    ++count;
  }
  if (count == 0) return;
  const std::vector<std::byte> mean = as_bytes(sum.to(type_).div_(count));
  for (int replica = 0; replica < hub_.replicas; ++replica) {
    const int rank = hub_.rank(replica, place);
    const auto part = std::exchange(at(rank).part, std::nullopt);
    if (part) send(rank, {.kind = kPart, .number = part->number, .body = mean});
  }
}

void DilocoCoordinator::answer_synchronize(const Send& send) {
  if (!all_active([](const Rank& one) { return one.synchronizes.has_value(); })) return;
  for (int rank = 0; rank < hub_.count(); ++rank) {
    const auto step = std::exchange(at(rank).synchronizes, std::nullopt);
    if (!step) continue;
    membership_->advance(hub_.replica(rank), *step);
    send(rank, {.kind = kSynchronize});
  }
}

void DilocoCoordinator::answer_requests(const Send& send) {
  for (int rank = hub_.places; rank < hub_.count(); ++rank) {
    std::optional<std::int64_t>& number = at(rank).reads_request;
    if (!number || *number > static_cast<std::int64_t>(requests_.size())) continue;
    const auto index = static_cast<std::size_t>(*number) - 1;
    number.reset();
    send(rank, {.kind = kReadRequest, .number = requests_.at(index)});
  }
}

// Forwards the tensors to the ranks of rank 0's replica, each to its place. A replica with an
// incomplete rank is left out on all ranks.
void DilocoCoordinator::answer_states(const Send& send) {
  const auto has_sent = [this](int rank) {
    return states_[static_cast<std::size_t>(rank)].is_complete;
  };
  for (int place = 0; place < hub_.places; ++place) {
    if (!at(place).waits_for_states) return;
  }
  for (int rank = hub_.places; rank < hub_.count(); ++rank) {
    if (at(rank).is_active && !has_sent(rank)) return;
  }
  for (int replica = 1; replica < hub_.replicas; ++replica) {
    bool is_complete = true;
    for (int place = 0; place < hub_.places; ++place) {
      is_complete = is_complete && has_sent(hub_.rank(replica, place));
    }
    for (int place = 0; place < hub_.places; ++place) {
      const int rank = hub_.rank(replica, place);
      const States states = std::exchange(states_[static_cast<std::size_t>(rank)], {});
      for (const auto& [number, bytes] : states.tensors) {
        if (!is_complete) break;
        send(place, {.kind = kState, .number = number, .step = replica, .body = bytes});
      }
    }
  }
  for (int place = 0; place < hub_.places; ++place) {
    at(place).waits_for_states = false;
    send(place, {.kind = kAwaitStates});
  }
}

void DilocoCoordinator::answer_others(const Send& send) {
  if (!ranks_.front().waits_for_all) return;
  if (!all_active([](const Rank&) { return false; }, hub_.places)) return;
  ranks_.front().waits_for_all = false;
  send(0, {.kind = kAwaitAll});
}

}  // namespace scaletrain::local_sgd
