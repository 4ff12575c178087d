#include "lib/local_sgd/diloco_coordinator.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

DilocoCoordinator::DilocoCoordinator(HubRanks hub, std::shared_ptr<Membership> roll,
                                     std::shared_ptr<ReceivedTensors> given, at::ScalarType type)
    : ranks_of_hub_(hub),
      roll_(std::move(roll)),
      given_(std::move(given)),
      type_(type),
      ranks_(static_cast<std::size_t>(hub.count())) {}

void DilocoCoordinator::received(int rank, dist::HubMessage message, const Send& send) {
  Rank& one = ranks_[static_cast<std::size_t>(rank)];
  if (!one.is_there && message.kind != kAwaitAll) return;  // the hub has given it up
  switch (message.kind) {
    case kPart:
      one.part = std::move(message);
      break;
    case kSynchronize:
      one.meets = message.step;
      break;
    case kStop:
      one.stops = message.step;
      if (stop_ == Stop::kNone) ask_all(send);
      break;
    case kRequest:
      given_->clear();
      for (Rank& other : ranks_) other.has_given = false;
      wishes_.push_back(message.number);
      break;
    case kAwaitStates:
      one.waits_for_given = true;
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
    case kReadRequest:
      one.asks = message.step;
      break;
    case kStatesSent:
      given_->finish(rank);
      one.has_given = true;
      break;
    case kState:
      return given_->put(rank, message.number, std::move(message.body));
  }
  advance(send);
}

// Also called when a rank that has left closes its connection.
void DilocoCoordinator::lost(int rank, const Send& send) {
  if (ranks_[static_cast<std::size_t>(rank)].has_left) return;
  roll_->lost(ranks_of_hub_.replica(rank));
  drop(ranks_of_hub_.replica(rank));
  advance(send);
}

void DilocoCoordinator::leave(int rank, const Send& send) {
  ranks_[static_cast<std::size_t>(rank)] = {.is_there = false, .has_left = true};
  send(rank, {.kind = kLeave});
  const int replica = ranks_of_hub_.replica(rank);
  const auto first = ranks_.begin() + ranks_of_hub_.rank(replica, 0);
  if (std::all_of(first, first + ranks_of_hub_.places,
                  [](const Rank& one) { return one.has_left; })) {
    roll_->left(replica);
  }
}

void DilocoCoordinator::drop(int replica) {
  for (int place = 0; place < ranks_of_hub_.places; ++place) {
    Rank& one = ranks_[static_cast<std::size_t>(ranks_of_hub_.rank(replica, place))];
    one = {.is_there = false, .has_left = one.has_left};
  }
}

void DilocoCoordinator::ask_all(const Send& send) {
  stop_ = Stop::kAsked;
  for (int rank = 0; rank < ranks_of_hub_.count(); ++rank) {
    const Rank& one = ranks_[static_cast<std::size_t>(rank)];
    if (one.is_there && !one.stops) send(rank, {.kind = kStopRequested});
  }
}

// Drops the replicas that rank 0 waits for. While a stop is asked for no round ends, and replicas
// that have sent their step wait as rank 0 does.
void DilocoCoordinator::give_up() {
  const Rank& first = ranks_.front();
  for (int rank = ranks_of_hub_.places; rank < ranks_of_hub_.count(); ++rank) {
    const Rank& one = ranks_[static_cast<std::size_t>(rank)];
    const bool is_behind = (first.part && !one.part) || (first.meets && !one.meets);
    const bool is_awaited = (stop_ == Stop::kAsked ? !one.stops : is_behind) ||
                            (first.waits_for_given && !one.has_given) || first.waits_for_all;
    if (one.is_there && is_awaited) drop(ranks_of_hub_.replica(rank));
  }
}

template <class Has>
bool DilocoCoordinator::all_there(const Has& has) const {
  return std::ranges::all_of(ranks_, [&](const Rank& one) { return !one.is_there || has(one); });
}

template <class Has>
bool DilocoCoordinator::others_there(const Has& has) const {
  return std::all_of(ranks_.begin() + ranks_of_hub_.places, ranks_.end(),
                     [&](const Rank& one) { return !one.is_there || has(one); });
}

void DilocoCoordinator::advance(const Send& send) {
  answer_stop(send);
  if (stop_ != Stop::kAsked) {
    answer_parts(send);
    answer_meets(send);
  }
  answer_wishes(send);
  answer_given(send);
  answer_others(send);
}

void DilocoCoordinator::answer_stop(const Send& send) {
  if (stop_ != Stop::kAsked || !all_there([](const Rank& one) { return one.stops.has_value(); }))
    return;
  stop_ = Stop::kAgreed;
  std::int64_t furthest = 0;
  for (const Rank& one : ranks_) furthest = std::max(furthest, one.stops.value_or(0));
  for (int rank = 0; rank < ranks_of_hub_.count(); ++rank) {
    Rank& one = ranks_[static_cast<std::size_t>(rank)];
    one.part.reset();
    one.meets.reset();
    if (one.is_there) send(rank, {.kind = kStopStep, .step = furthest});
  }
}

void DilocoCoordinator::answer_parts(const Send& send) {
  if (!all_there([](const Rank& one) { return one.part.has_value(); })) return;
  for (int place = 0; place < ranks_of_hub_.places; ++place) answer_part(place, send);
}

void DilocoCoordinator::answer_part(int place, const Send& send) {
  const at::NoGradGuard no_grad;
  at::Tensor sum;
  std::int64_t count = 0;
  for (int replica = 0; replica < ranks_of_hub_.replicas; ++replica) {
    const Rank& one = ranks_[static_cast<std::size_t>(ranks_of_hub_.rank(replica, place))];
    if (!one.part) continue;
    const at::Tensor values = as_values(one.part->body, type_);
    sum = sum.defined() ? sum.add_(values)
                        : values.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    ++count;
  }
  if (count == 0) return;
  const std::vector<std::byte> mean = as_bytes(sum.to(type_).div_(count));
  for (int replica = 0; replica < ranks_of_hub_.replicas; ++replica) {
    const int rank = ranks_of_hub_.rank(replica, place);
    const auto part = std::exchange(ranks_[static_cast<std::size_t>(rank)].part, std::nullopt);
    if (part) send(rank, {.kind = kPart, .number = part->number, .body = mean});
  }
}

void DilocoCoordinator::answer_meets(const Send& send) {
  if (!all_there([](const Rank& one) { return one.meets.has_value(); })) return;
  for (int rank = 0; rank < ranks_of_hub_.count(); ++rank) {
    const auto step = std::exchange(ranks_[static_cast<std::size_t>(rank)].meets, std::nullopt);
    if (!step) continue;
    roll_->came(ranks_of_hub_.replica(rank), *step);
    send(rank, {.kind = kSynchronize});
  }
}

void DilocoCoordinator::answer_wishes(const Send& send) {
  for (int rank = ranks_of_hub_.places; rank < ranks_of_hub_.count(); ++rank) {
    Rank& one = ranks_[static_cast<std::size_t>(rank)];
    if (!one.asks || *one.asks > static_cast<std::int64_t>(wishes_.size())) continue;
    const auto round = static_cast<std::size_t>(*one.asks);
    one.asks.reset();
    send(rank, {.kind = kReadRequest, .number = wishes_.at(round - 1)});
  }
}

// Rank 0 reads the tensors in its own process; the other ranks of its replica are sent those of
// their place. A replica with an incomplete rank is left out on all ranks.
void DilocoCoordinator::answer_given(const Send& send) {
  const auto first = ranks_.begin(), behind = first + ranks_of_hub_.places;
  const bool all_wait =
      std::all_of(first, behind, [](const Rank& one) { return one.waits_for_given; });
  if (!all_wait || !others_there([](const Rank& one) { return one.has_given; })) return;
  for (int replica = 1; replica < ranks_of_hub_.replicas; ++replica) {
    bool is_whole = true;
    for (int place = 0; place < ranks_of_hub_.places; ++place) {
      is_whole = is_whole && given_->is_whole(ranks_of_hub_.rank(replica, place));
    }
    for (int place = is_whole ? 1 : 0; place < ranks_of_hub_.places; ++place) {
      for (auto& [number, bytes] : given_->take(ranks_of_hub_.rank(replica, place))) {
        if (!is_whole) continue;
        send(place, {.kind = kState, .number = number, .step = replica, .body = std::move(bytes)});
      }
    }
  }
  for (int place = 0; place < ranks_of_hub_.places; ++place) {
    ranks_[static_cast<std::size_t>(place)].waits_for_given = false;
    send(place, {.kind = kAwaitStates});
  }
}

void DilocoCoordinator::answer_others(const Send& send) {
  Rank& first = ranks_.front();
  if (first.waits_for_all && others_there([](const Rank&) { return false; })) {
    first.waits_for_all = false;
    send(0, {.kind = kAwaitAll});
  }
}

}  // namespace scaletrain::local_sgd
