#include "lib/local_sgd/coordinator.h"

#include <utility>

#include "lib/local_sgd/hub_messages.h"

namespace scaletrain::local_sgd {

Coordinator::Coordinator(HubRanks hub, std::int64_t steps)
    : hub_(hub),
      ranks_(static_cast<std::size_t>(hub.count())),
      progress_(static_cast<std::size_t>(hub.replicas), {.steps = steps}) {}

void Coordinator::received(int rank, dist::HubMessage message, const Send& send) {
  Rank& one = at(rank);
  const bool ends = message.kind == kLeave || message.kind == kAwaitAll || message.kind == kGiveUp;
  if (!one.is_active && !ends) return;  // its replica was dropped
  switch (message.kind) {
    case kPart:
      one.parts.push_back(std::move(message));
      break;
    case kSynchronize:
      one.synchronizes = message.step;
      break;
    case kStop:
      one.stop = message.step;
      break;
    case kAwaitAll:
    case kAwaitStates:
      one.awaits = message.kind;
      break;
    case kLeave:
      one.has_finished = message.number == kFinished;
      leave(rank, send);
      break;
    default:
      handle(rank, std::move(message), send);
  }
  advance(send);
  answer_awaiting(send);
}

// Also called when a rank that has left closes its connection.
void Coordinator::lost(int rank, const Send& send) {
  if (at(rank).has_left) return;
  const int replica = hub_.replica(rank);
  {
    const std::lock_guard lock(mutex_);
    progress_[static_cast<std::size_t>(replica)].is_lost = true;
  }
  drop(replica);
  advance(send);
  answer_awaiting(send);
}

std::vector<ReplicaProgress> Coordinator::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void Coordinator::set_steps(int replica, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  progress_[static_cast<std::size_t>(replica)].steps = steps;
}

void Coordinator::drop(int replica) {
  for (int place = 0; place < hub_.places; ++place) {
    Rank& one = at(hub_.rank(replica, place));
    one = {.is_active = false, .has_left = one.has_left, .has_finished = one.has_finished};
  }
}

void Coordinator::leave(int rank, const Send& send) {
  at(rank).is_active = false;
  at(rank).has_left = true;
  send(rank, {.kind = kLeave});
  const int replica = hub_.replica(rank);
  if (!all_of(replica, [](const Rank& one) { return one.has_left; })) return;
  const std::lock_guard lock(mutex_);
  progress_[static_cast<std::size_t>(replica)].has_left = true;
}

void Coordinator::answer_awaiting(const Send& send) {
  for (int replica = 1; replica < hub_.replicas; ++replica) {
    if (is_active(replica)) return;
  }
  for (int rank = 0; rank < hub_.places; ++rank) {
    if (at(rank).awaits != kAwaitAll) continue;
    at(rank).awaits = 0;
    send(rank, {.kind = kAwaitAll});
    all_left(rank, send);
  }
}

}  // namespace scaletrain::local_sgd
