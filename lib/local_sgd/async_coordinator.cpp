#include "lib/local_sgd/async_coordinator.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

AsyncCoordinator::AsyncCoordinator(HubRanks hub, const std::vector<at::Tensor>& parts,
                                   std::int64_t staleness, std::shared_ptr<Membership> membership)
    : hub_(hub),
      parts_(static_cast<std::size_t>(hub.places), std::vector<at::Tensor>(parts.size())),
      staleness_(staleness),
      membership_(std::move(membership)),
      ranks_(static_cast<std::size_t>(hub.count())),
      replicas_(static_cast<std::size_t>(hub.replicas)) {
  for (std::size_t i = 0; i < parts.size(); ++i) parts_.front()[i] = parts[i].clone();
  for (Replica& replica : replicas_) replica.share = share();
}

template <class Is>
bool AsyncCoordinator::all_of(int replica, const Is& is) {
  const auto first = ranks_.begin() + hub_.rank(replica, 0);
  return std::all_of(first, first + hub_.places, is);
}

double AsyncCoordinator::share() const {
  const auto count =
      std::ranges::count_if(replicas_, [](const Replica& one) { return !one.is_gone; });
  return 1.0 / static_cast<double>(count);
}

void AsyncCoordinator::received(int rank, dist::HubMessage message, const Send& send) {
  const int replica = hub_.replica(rank), place = hub_.place(rank);
  switch (message.kind) {
    case kInitialPart:
      parts_.at(static_cast<std::size_t>(place)).at(static_cast<std::size_t>(message.number)) =
          as_floats(message.body).clone();
      return;
    case kPart:
      at(replica, place).changes.push_back(std::move(message));
      return;
    case kSynchronize:
      at(replica, place).synchronizes = true;
      if (all_of(replica, [](const Rank& one) { return one.synchronizes; }))
        add_changes(replica, message.step);
      break;
    case kLeave:
      leave(rank, message.number == kFinished, send);
      break;
    case kAwaitAll:
      waits_for_all_ = true;
      break;
    case kGiveUp:
      is_closed_ = true;
      break;
    case kStop:
      stop_requested_ = true;
      break;
    case kFetch:
      return answer(rank, kFetch, message.number, send);
  }
  answer_waiting(send);
}

void AsyncCoordinator::lost(int rank, const Send& send) {
  if (ranks_[static_cast<std::size_t>(rank)].has_left) return;  // closes its connection
  const int number = hub_.replica(rank);
  Replica& replica = replicas_[static_cast<std::size_t>(number)];
  replica.is_gone = membership_->lose(number) || replica.is_gone;
  replica.is_active = replica.waits = false;
  for (int place = 0; place < hub_.places; ++place) at(number, place).changes.clear();
  answer_waiting(send);
}

// Adds in the order of places, so that the bits do not depend on which rank sends first.
void AsyncCoordinator::add_changes(int replica, std::int64_t step) {
  Replica& one = replicas_[static_cast<std::size_t>(replica)];
  if (is_closed_ || !one.is_active) return;
  const at::NoGradGuard no_grad;
  for (int place = 0; place < hub_.places; ++place) {
    for (const dist::HubMessage& part : at(replica, place).changes) {
      parts_.at(static_cast<std::size_t>(place))
          .at(static_cast<std::size_t>(part.number))
          .add_(as_floats(part.body), one.share);
    }
  }
  ++one.synchronizations;
  one.waits = true;
  membership_->advance(replica, step);
}

void AsyncCoordinator::leave(int rank, bool is_over, const Send& send) {
  const int number = hub_.replica(rank);
  ranks_[static_cast<std::size_t>(rank)].has_left = true;
  send(rank, {.kind = kLeave});
  if (!all_of(number, [](const Rank& one) { return one.has_left; })) return;
  Replica& replica = replicas_[static_cast<std::size_t>(number)];
  replica.is_active = false;
  replica.is_gone = !is_over;
  membership_->leave(number);
}

void AsyncCoordinator::answer(int rank, std::int32_t kind, std::int32_t part,
                              const Send& send) const {
  const auto& parts = parts_.at(static_cast<std::size_t>(hub_.place(rank)));
  send(rank, {.kind = kind,
              .number = stop_requested_ ? kStopFlag : 0,
              .body = as_bytes(parts.at(static_cast<std::size_t>(part)))});
}

bool AsyncCoordinator::is_too_far_ahead(const Replica& replica) const {
  if (stop_requested_) return false;
  return std::ranges::any_of(replicas_, [&](const Replica& other) {
    return other.is_active && replica.synchronizations - other.synchronizations > staleness_;
  });
}

void AsyncCoordinator::answer_all_of(int replica, const Send& send) {
  for (int place = 0; place < hub_.places; ++place) {
    Rank& one = at(replica, place);
    one.synchronizes = false;
    for (const dist::HubMessage& part : std::exchange(one.changes, {})) {
      answer(hub_.rank(replica, place), kPart, part.number, send);
    }
  }
}

void AsyncCoordinator::answer_waiting(const Send& send) {
  for (int number = 0; number < hub_.replicas; ++number) {
    Replica& replica = replicas_[static_cast<std::size_t>(number)];
    if (!replica.waits || is_too_far_ahead(replica)) continue;
    replica.waits = false;
    replica.share = share();
    answer_all_of(number, send);
  }
  const bool all_left = std::none_of(replicas_.begin() + 1, replicas_.end(),
                                     [](const Replica& one) { return one.is_active; });
  if (!waits_for_all_ || !all_left) return;
  waits_for_all_ = false;
  send(0, {.kind = kAwaitAll});
}

}  // namespace scaletrain::local_sgd
