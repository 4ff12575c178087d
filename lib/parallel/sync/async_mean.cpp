#include "lib/parallel/sync/async_mean.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/parallel/sync/flat_bytes.h"
#include "lib/parallel/sync/hub_words.h"

namespace scaletrain::parallel {

AsyncMean::AsyncMean(const std::vector<at::Tensor>& parts, std::int64_t staleness,
                     std::shared_ptr<ReplicaRoll> roll)
    : staleness_(staleness), roll_(std::move(roll)), replicas_(roll_->places().size()) {
  for (const at::Tensor& part : parts) parts_.push_back(part.clone());
  for (Replica& replica : replicas_) replica.share = share();
}

double AsyncMean::share() const {
  const auto count =
      std::ranges::count_if(replicas_, [](const Replica& one) { return !one.is_gone; });
  return 1.0 / static_cast<double>(count);
}

void AsyncMean::received(int rank, dist::HubMessage message, const Send& send) {
  Replica& replica = replicas_[static_cast<std::size_t>(rank)];
  switch (message.kind) {
    case kPart:
      add(replica, message.number, message.body);
      replica.given.push_back(message.number);
      return;
    case kMeet:
      ++replica.exchanges;
      replica.waits = true;
      roll_->came(rank, message.step);
      break;
    case kLeave:
      replica.is_there = false;
      replica.is_gone = message.number != kIsOver;
      roll_->left(rank);
      send(rank, {.kind = kLeave});
      break;
    case kAwaitAll:
      replica.waits_for_all = true;
      break;
    case kStop:
      stops_ = true;
      break;
    case kFetch:
      return answer(rank, kFetch, message.number, send);
  }
  answer_waiting(send);
}

void AsyncMean::lost(int rank, const Send& send) {
  Replica& replica = replicas_[static_cast<std::size_t>(rank)];
  replica.is_gone = roll_->lost(rank) || replica.is_gone;
  replica.is_there = replica.waits = replica.waits_for_all = false;
  answer_waiting(send);
}

void AsyncMean::add(const Replica& replica, std::int32_t part,
                    const std::vector<std::byte>& learned) {
  const at::NoGradGuard no_grad;
  parts_.at(static_cast<std::size_t>(part)).add_(as_floats(learned), replica.share);
}

void AsyncMean::answer(int rank, std::int32_t kind, std::int32_t part, const Send& send) const {
  send(rank, {.kind = kind,
              .number = stops_ ? kShallStop : 0,
              .body = as_bytes(parts_.at(static_cast<std::size_t>(part)))});
}

bool AsyncMean::is_too_far_ahead(const Replica& replica) const {
  if (stops_) return false;
  return std::ranges::any_of(replicas_, [&](const Replica& other) {
    return other.is_there && replica.exchanges - other.exchanges > staleness_;
  });
}

void AsyncMean::answer_waiting(const Send& send) {
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
    Replica& replica = replicas_[rank];
    const int number = static_cast<int>(rank);
    if (replica.waits && !is_too_far_ahead(replica)) {
      replica.waits = false;
      replica.share = share();
      for (const std::int32_t part : std::exchange(replica.given, {})) {
        answer(number, kPart, part, send);
      }
    }
    const bool all_left = std::none_of(replicas_.begin(), replicas_.end(), [&](const Replica& one) {
      return one.is_there && &one != &replica;
    });
    if (replica.waits_for_all && all_left) {
      replica.waits_for_all = false;
      send(number, {.kind = kAwaitAll});
    }
  }
}

}  // namespace scaletrain::parallel
