#include "lib/track/feed/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{30'000};
constexpr milliseconds kEndingPause{200};
constexpr int kMostDoublings = 6;

}  // namespace

Delivery::Delivery(DeliveryOptions options)
    : options_(std::move(options)), lines_(options_.file, options_.from), offset_(options_.from) {}

void Delivery::pump(bool is_ending) {
  if (is_ending && !is_ending_) not_before_ = {};  // a pause of normal times may be long
  is_ending_ = is_ending;
  is_drained_ = false;
  if (core::now() < not_before_) return;
  if (attempt([] {}) == Outcome::kAgain) return;
  while (held_ > 0 || read_batch()) {
    if (!write_batch()) return;
  }
  if (attempt([this] { pump_more(); }) == Outcome::kAgain) return;
  is_drained_ = true;
}

bool Delivery::finish() {
  if (!is_drained_) return false;
  return attempt([this] { finish_sink(); }) != Outcome::kAgain;
}

bool Delivery::read_batch() {
  const auto begin_again = [this] {
    drop_sink();
    read_ = written_ = lost_ = 0;
  };
  lines_.read(
      begin_again, [this](const nlohmann::ordered_json& line) { held_ += add(line); },
      options_.batch);
  offset_ = lines_.offset();
  read_ += held_;
  return held_ > 0;
}

bool Delivery::write_batch() {
  const Outcome outcome = attempt([this] { write_items(); });
  if (outcome == Outcome::kAgain) return false;
  failures_ = 0;
  (outcome == Outcome::kDone ? written_ : lost_) += held_;
  held_ = 0;
  clear_items();
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

std::int64_t Delivery::count() const {
  std::int64_t count = read_;
  observe::LineFollower rest(options_.file, offset_);
  rest.read([] {}, [&](const nlohmann::ordered_json& line) { count += items_in(line); });
  return count;
}

}  // namespace scaletrain::track
