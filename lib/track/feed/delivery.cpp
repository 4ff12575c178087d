#include "lib/track/feed/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{30'000};
constexpr milliseconds kEndingPause{200};
constexpr int kMostDoublings = 6;

}  // namespace

Delivery::Delivery(DeliveryOptions options) : options_(std::move(options)) {}

void Delivery::add_source(std::unique_ptr<Source> source) { sources_.push_back(std::move(source)); }

void Delivery::pump(bool is_ending) {
  if (is_ending && !is_ending_) not_before_ = {};  // a pause of normal times may be long
  is_ending_ = is_ending;
  is_drained_ = false;
  if (core::now() < not_before_) return;
  if (attempt([] {}) == Outcome::kAgain) return;
  while (Source* const source = next_source()) {
    if (!write_batch(*source)) return;
  }
  is_drained_ = true;
}

bool Delivery::finish() {
  if (!is_drained_) return false;
  return attempt([this] { finish_sink(); }) != Outcome::kAgain;
}

// Returns the first file with a batch; nullptr: all items were passed on.
Source* Delivery::next_source() {
  for (const auto& source : sources_) {
    const bool is_first = source == sources_.front();
    const auto restart = [&] {
      if (is_first) begin_again();
    };
    if (source->fill(restart)) return source.get();
  }
  return nullptr;
}

// The first file became shorter: the others are read from their beginning too.
void Delivery::begin_again() {
  drop_sink();
  for (std::size_t i = 1; i < sources_.size(); ++i) sources_[i]->rewind();
}

bool Delivery::write_batch(Source& source) {
  const Outcome outcome = attempt([&source] { source.write_batch(); });
  if (outcome == Outcome::kAgain) return false;
  failures_ = 0;
  source.settle(outcome == Outcome::kDone);
  return true;
}

Delivery::Outcome Delivery::attempt(const std::function<void()>& work) {
  try {
    make_sink();
    work();
    return Outcome::kDone;
  } catch (const TryAgain& error) {
    warn_once(fmt::format("{}: {}", error.place(), error.found()), false);
  } catch (const core::Error& error) {
    warn_once(fmt::format("{}: {}", error.place(), error.found()), true);
    if (!options_.keeps) return Outcome::kFailed;
  } catch (const std::exception& error) {
    warn_once(core::describe(error), true);
    if (!options_.keeps) return Outcome::kFailed;
  }
  pause();
  return Outcome::kAgain;
}

void Delivery::warn_once(const std::string& found, bool is_final) {
  if (std::exchange(has_warned_, true)) return;
  options_.warn(fmt::format("{}: {}; {}", options_.what, found,
                            is_final ? options_.consequence : "it is tried again"));
}

void Delivery::pause() {
  const milliseconds wanted = kFirstPause * (1 << std::min(failures_++, kMostDoublings));
  not_before_ = core::now() + (is_ending_ ? kEndingPause : std::min(wanted, kLongestPause));
}

std::int64_t Delivery::count() const { return sources_.front()->count(); }

std::vector<Shortfall> Delivery::missing() const {
  std::vector<Shortfall> missing;
  for (const auto& source : sources_) {
    const std::int64_t left = source->count() - source->written();
    const bool is_first = source == sources_.front();
    if (left > 0) missing.push_back({source->noun(), left, is_first});
  }
  return missing;
}

}  // namespace scaletrain::track
