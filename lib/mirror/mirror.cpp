#include "lib/mirror/mirror.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::mirror {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kLongestWait{300'000};
constexpr int kMostDoublings = 16;

}  // namespace

Mirror::Mirror(std::unique_ptr<Place> place, format::Retention retention,
               std::chrono::milliseconds first_wait)
    : place_(std::move(place)),
      retention_(retention),
      first_wait_(first_wait),
      thread_([this] { run(); }) {}

Mirror::~Mirror() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  place_->cancel();
  changed_.notify_all();
  thread_.join();
}

void Mirror::add(std::filesystem::path checkpoint, std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    if (is_copying_ || wanted_) ++behind_;
    wanted_ = Wanted{std::move(checkpoint), step, core::now()};
  }
  changed_.notify_all();
}

std::optional<Copied> Mirror::next() {
  const std::lock_guard lock(mutex_);
  if (outcomes_.empty()) return std::nullopt;
  const Outcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  if (outcome.error) std::rethrow_exception(outcome.error);
  return outcome.copied;
}

bool Mirror::finish(const std::function<void()>& beat, std::chrono::duration<double> limit,
                    std::chrono::duration<double> still) {
  const core::SteadyTime since = core::now();
  std::unique_lock lock(mutex_);
  hurries_ = true;
  moved_ = since;
  changed_.notify_all();
  while (wanted_ || is_copying_) {
    const core::SteadyTime now = core::now();
    if (now - since > limit || now - moved_.load() > still) break;
    beat();
    changed_.wait_for(lock, kLook);
  }
  hurries_ = false;
  return !wanted_ && !is_copying_;
}

std::optional<Mirror::Outcome> Mirror::copy(const Wanted& wanted) {
  Outcome outcome{.copied = {.step = wanted.step}, .error = nullptr};
  try {
    const OpenCheckpoint checkpoint(wanted.checkpoint);
    outcome.copied.bytes = place_->put(checkpoint, [this] { moved_ = core::now(); });
    place_->retain(wanted.step, retention_);
    outcome.copied.seconds = core::seconds_since(wanted.since);
  } catch (const core::CheckpointError&) {
    // The run has removed the checkpoint: a newer one exists or follows.
    std::error_code unknown;
    if (!std::filesystem::exists(wanted.checkpoint, unknown)) return std::nullopt;
    outcome.error = std::current_exception();
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

void Mirror::count(const Outcome& outcome, const Wanted& wanted) {
  if (!outcome.error) {
    failures_ = 0;
    return;
  }
  try {
    std::rethrow_exception(outcome.error);
  } catch (const core::CheckpointError&) {  // not retried, as it is damaged
    return;
  } catch (...) {
    const auto wait = first_wait_ * (1 << std::min(failures_, kMostDoublings));
    next_try_ = core::now() + std::min<std::chrono::milliseconds>(wait, kLongestWait);
    ++failures_;
  }
  if (!wanted_ && !hurries_) wanted_ = wanted;
}

void Mirror::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || wanted_; });
    if (!ends_ && failures_ > 0) {
      changed_.wait_until(lock, next_try_, [this] { return ends_ || hurries_; });
    }
    if (ends_) return;
    const Wanted wanted = *std::exchange(wanted_, std::nullopt);
    is_copying_ = true;
    behind_ = 0;
    lock.unlock();
    std::optional<Outcome> outcome = copy(wanted);
    lock.lock();
    is_copying_ = false;
    if (outcome) {
      count(*outcome, wanted);
      outcome->copied.behind = behind_;
      outcomes_.push_back(std::move(*outcome));
    }
    changed_.notify_all();
  }
}

}  // namespace scaletrain::mirror
