#include "lib/parallel/sync/round_mean.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "lib/parallel/sync/flat_bytes.h"
#include "lib/parallel/sync/hub_words.h"

namespace scaletrain::parallel {

RoundMean::RoundMean(std::shared_ptr<ReplicaRoll> roll, std::shared_ptr<GivenTensors> given)
    : roll_(std::move(roll)), given_(std::move(given)), replicas_(roll_->places().size()) {}

void RoundMean::received(int rank, dist::HubMessage message, const Send& send) {
  Replica& replica = replicas_[static_cast<std::size_t>(rank)];
  if (!replica.is_there && message.kind != kAwaitAll) return;  // it was given up
  switch (message.kind) {
    case kPart:
      replica.part = std::move(message);
      break;
    case kMeet:
      replica.meets = message.step;
      break;
    case kStop:
      replica.stops = message.step;
      if (stop_ == Stop::kNone) ask_all(send);
      break;
    case kWish:
      given_->clear();
      for (Replica& one : replicas_) one.has_given = false;
      wishes_.push_back(message.number);
      break;
    case kAwaitGiven:
      replica.waits_for_given = true;
      break;
    case kAwaitAll:
      replica.waits_for_all = true;
      break;
    case kGiveUp:
      give_up();
      break;
    case kLeave:
      roll_->left(rank);
      drop(replica);
      send(rank, {.kind = kLeave});
      break;
    case kAsk:
      replica.asks = message.step;
      break;
    case kGiven:
      given_->finish(rank);
      replica.has_given = true;
      break;
    case kGive:
      return given_->put(rank, message.number, std::move(message.body));
  }
  advance(send);
}

void RoundMean::lost(int rank, const Send& send) {
  roll_->lost(rank);
  drop(replicas_[static_cast<std::size_t>(rank)]);
  advance(send);
}

void RoundMean::drop(Replica& replica) { replica = {.is_there = false}; }

void RoundMean::ask_all(const Send& send) {
  stop_ = Stop::kAsked;
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
    const Replica& one = replicas_[rank];
    if (one.is_there && !one.stops) send(static_cast<int>(rank), {.kind = kAskStop});
  }
}

// Whom rank 0 waits for.
void RoundMean::give_up() {
  const Replica& first = replicas_.front();
  for (std::size_t rank = 1; rank < replicas_.size(); ++rank) {
    Replica& one = replicas_[rank];
    const bool is_awaited = (stop_ == Stop::kAsked && !one.stops) || (first.part && !one.part) ||
                            (first.meets && !one.meets) ||
                            (first.waits_for_given && !one.has_given) || first.waits_for_all;
    if (is_awaited) drop(one);
  }
}

template <class Has>
bool RoundMean::all_there(const Has& has) const {
  return std::ranges::all_of(replicas_,
                             [&](const Replica& one) { return !one.is_there || has(one); });
}

void RoundMean::advance(const Send& send) {
  answer_stop(send);
  if (stop_ != Stop::kAsked) {
    answer_parts(send);
    answer_meets(send);
  }
  answer_others(send);
}

void RoundMean::answer_stop(const Send& send) {
  if (stop_ != Stop::kAsked || !all_there([](const Replica& one) { return one.stops.has_value(); }))
    return;
  stop_ = Stop::kAgreed;
  std::int64_t furthest = 0;
  for (const Replica& one : replicas_) furthest = std::max(furthest, one.stops.value_or(0));
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
    Replica& one = replicas_[rank];
    one.part.reset();
    one.meets.reset();
    if (one.is_there) send(static_cast<int>(rank), {.kind = kStopAt, .step = furthest});
  }
}

void RoundMean::answer_parts(const Send& send) {
  if (!all_there([](const Replica& one) { return one.part.has_value(); })) return;
  const at::NoGradGuard no_grad;
  at::Tensor sum;
  std::int64_t count = 0;
  for (const Replica& one : replicas_) {
    if (!one.part) continue;
    const at::Tensor weights = as_floats(one.part->body);
    sum = sum.defined() ? sum.add_(weights) : weights.clone();
    ++count;
  }
  if (count == 0) return;
  const std::vector<std::byte> mean = as_bytes(sum.div_(count));
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
    const auto part = std::exchange(replicas_[rank].part, std::nullopt);
    if (!part) continue;
    send(static_cast<int>(rank), {.kind = kPart, .number = part->number, .body = mean});
  }
}

void RoundMean::answer_meets(const Send& send) {
  if (!all_there([](const Replica& one) { return one.meets.has_value(); })) return;
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
    const auto step = std::exchange(replicas_[rank].meets, std::nullopt);
    if (!step) continue;
    roll_->came(static_cast<int>(rank), *step);
    send(static_cast<int>(rank), {.kind = kMeet});
  }
}

void RoundMean::answer_others(const Send& send) {
  for (std::size_t rank = 1; rank < replicas_.size(); ++rank) {
    Replica& one = replicas_[rank];
    if (!one.asks || *one.asks > static_cast<std::int64_t>(wishes_.size())) continue;
    const auto round = static_cast<std::size_t>(*one.asks);
    one.asks.reset();
    send(static_cast<int>(rank), {.kind = kAsk, .number = wishes_.at(round - 1)});
  }
  Replica& first = replicas_.front();
  const auto others = [&](const auto& is_so) {
    return std::all_of(replicas_.begin() + 1, replicas_.end(),
                       [&](const Replica& one) { return !one.is_there || is_so(one); });
  };
  if (first.waits_for_given && others([](const Replica& one) { return one.has_given; })) {
    first.waits_for_given = false;
    send(0, {.kind = kAwaitGiven});
  }
  if (first.waits_for_all && others([](const Replica&) { return false; })) {
    first.waits_for_all = false;
    send(0, {.kind = kAwaitAll});
  }
}

}  // namespace scaletrain::parallel
