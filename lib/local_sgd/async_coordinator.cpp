#include "lib/local_sgd/async_coordinator.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

AsyncCoordinator::AsyncCoordinator(HubRanks hub, std::int64_t steps, std::int64_t staleness)
    : Coordinator(hub, steps),
      staleness_(staleness),
      parts_(static_cast<std::size_t>(hub.places)),
      replicas_(static_cast<std::size_t>(hub.replicas), {.share = 1.0 / hub.replicas}) {}

void AsyncCoordinator::handle(int rank, dist::HubMessage message, const Send& send) {
  if (message.kind == kInitialPart) {
    parts_.at(static_cast<std::size_t>(hub_.place(rank)))
        .push_back(as_floats(message.body).clone());
    send(rank, {.kind = kInitialPart});
  } else if (message.kind == kGiveUp) {
    for (int replica = 1; replica < hub_.replicas; ++replica) drop(replica);
  }
}

void AsyncCoordinator::advance(const Send& send) {
  for (int number = 0; number < hub_.replicas; ++number) {
    if (all_of(number, [](const Rank& one) { return one.is_active && one.synchronizes; })) {
      add_changes(number);
    }
  }
  for (int number = 0; number < hub_.replicas; ++number) {
    const Replica& replica = replicas_[static_cast<std::size_t>(number)];
    if (replica.waits && is_active(number) && !is_too_far_ahead(replica)) answer(number, send);
  }
}

// Adds in the order of places, so that the bits do not depend on which rank sends first.
void AsyncCoordinator::add_changes(int number) {
  const at::NoGradGuard no_grad;
  Replica& replica = replicas_[static_cast<std::size_t>(number)];
  for (int place = 0; place < hub_.places; ++place) {
    Rank& one = at(hub_.rank(number, place));
    for (const dist::HubMessage& part : one.parts) {
      parts_.at(static_cast<std::size_t>(place))
          .at(static_cast<std::size_t>(part.number))
          .add_(as_floats(part.body), replica.share);
    }
    set_steps(number, *one.synchronizes);
    one.synchronizes.reset();
  }
  ++replica.synchronizations;
  replica.waits = true;
}

void AsyncCoordinator::answer(int number, const Send& send) {
  Replica& replica = replicas_[static_cast<std::size_t>(number)];
  replica.waits = false;
  replica.share = share();
  for (int place = 0; place < hub_.places; ++place) {
    const int rank = hub_.rank(number, place);
    for (const dist::HubMessage& part : std::exchange(at(rank).parts, {})) {
      send_part(rank, static_cast<std::size_t>(part.number), send);
    }
  }
}

void AsyncCoordinator::all_left(int rank, const Send& send) {
  const std::size_t count = parts_.at(static_cast<std::size_t>(hub_.place(rank))).size();
  for (std::size_t part = 0; part < count; ++part) send_part(rank, part, send);
}

void AsyncCoordinator::send_part(int rank, std::size_t part, const Send& send) const {
  const auto& parts = parts_.at(static_cast<std::size_t>(hub_.place(rank)));
  send(rank, {.kind = kPart,
              .number = stop_requested() ? kStopFlag : 0,
              .body = as_bytes(parts.at(part))});
}

// A replica that ended before training was over does not count.
double AsyncCoordinator::share() const {
  int count = 0;
  for (int replica = 0; replica < hub_.replicas; ++replica) {
    if (all_of(replica, [](const Rank& one) { return one.is_active || one.has_finished; })) ++count;
  }
  return 1.0 / count;
}

bool AsyncCoordinator::stop_requested() const {
  return std::ranges::any_of(ranks_, [](const Rank& one) { return one.stop.has_value(); });
}

bool AsyncCoordinator::is_too_far_ahead(const Replica& replica) const {
  if (stop_requested()) return false;
  for (int other = 0; other < hub_.replicas; ++other) {
    const Replica& one = replicas_[static_cast<std::size_t>(other)];
    if (is_active(other) && replica.synchronizations - one.synchronizations > staleness_) {
      return true;
    }
  }
  return false;
}

}  // namespace scaletrain::local_sgd
