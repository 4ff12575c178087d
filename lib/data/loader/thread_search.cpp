#include "lib/data/loader/thread_search.h"

#include <algorithm>

namespace scaletrain::data {
namespace {

constexpr double kWaits = 0.02;      // training waits for data above this share of its time
constexpr double kWaitsMore = 0.1;   // increase of that share that starts a new search
constexpr double kLeastGain = 1.03;  // more threads or read-ahead must gain 3 %
constexpr double kMostLoss = 0.99;   // fewer threads may cost 1 %, which is noise
constexpr int kMostFactor = 4;       // of the initial size

}  // namespace

ThreadSearch::ThreadSearch(ReadAheadSize initial, double least_window_s)
    : least_window_s_(least_window_s),
      most_{.threads = std::max(initial.threads, std::clamp(kMostFactor * initial.threads, 8, 64)),
            .prefetch = kMostFactor * initial.prefetch},
      size_(initial),
      best_(initial) {}

bool ThreadSearch::add(double samples_per_s, double waited_share) {
  const ReadAheadSize before = size_;
  if (!rate_ || (is_settled() && waited_share > waited_ + kWaitsMore)) {
    start(samples_per_s, waited_share);
  } else if (!is_settled()) {
    if (is_better(samples_per_s)) {
      best_ = size_;
      rate_ = move_ == Move::kFewerThreads ? std::max(*rate_, samples_per_s) : samples_per_s;
      waited_ = waited_share;
      has_gained_ = true;
      try_next(move_);
    } else {
      try_next(next_move());
    }
  }
  return size_ != before;
}

void ThreadSearch::start(double samples_per_s, double waited_share) {
  rate_ = samples_per_s;
  waited_ = waited_share;
  best_ = size_;
  try_next(waited_share > kWaits ? Move::kMoreThreads : Move::kFewerThreads);
}

bool ThreadSearch::is_better(double samples_per_s) const {
  return samples_per_s >= *rate_ * (move_ == Move::kFewerThreads ? kMostLoss : kLeastGain);
}

// The size that `move` leads to from the best one; nullopt: it is at the limit.
std::optional<ReadAheadSize> ThreadSearch::candidate(Move move) const {
  ReadAheadSize size = best_;
  if (move == Move::kMoreThreads) {
    size.threads = std::min(most_.threads, size.threads + (size.threads + 1) / 2);
  } else if (move == Move::kFewerThreads) {
    size.threads = std::max(1, size.threads - (size.threads + 3) / 4);
  } else if (move == Move::kMorePrefetch) {
    size.prefetch = std::min(most_.prefetch, 2 * size.prefetch);
  }
  return size == best_ ? std::nullopt : std::optional(size);
}

// After more threads gained nothing, fewer may do as well: then the store or the cores are the
// limit.
ThreadSearch::Move ThreadSearch::next_move() const {
  if (move_ == Move::kMoreThreads && !has_gained_) return Move::kFewerThreads;
  const bool is_last = move_ == Move::kMorePrefetch || waited_ <= kWaits;
  return is_last ? Move::kNone : Move::kMorePrefetch;
}

void ThreadSearch::try_next(Move move) {
  for (;;) {
    has_gained_ = has_gained_ && move == move_;
    move_ = move;
    const std::optional<ReadAheadSize> next = candidate(move);
    size_ = next.value_or(best_);
    if (next || move == Move::kNone) return;
    move = next_move();
  }
}

}  // namespace scaletrain::data
