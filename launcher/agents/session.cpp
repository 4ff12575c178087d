#include "launcher/agents/session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "lib/core/clock.h"

namespace scaletrain::launcher {
namespace {

// Interval at which the store is read.
constexpr std::chrono::milliseconds kStep{50};

}  // namespace

Session::Session(std::unique_ptr<KeyStore> store, const Join& join, const JobTerms& terms,
                 const AgentTiming& timing, std::optional<Leader::Options> leader, Journal& journal)
    : store_(std::move(store)), changes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!changes_) {
    throw core::Error(core::ExitCode::kMemory, "eventfd", core::errno_text(errno),
                      "raise the limit of open files: ulimit -n");
  }
  const core::SteadyTime now = core::now();
  if (leader) leader_.emplace(std::move(*leader), *store_, journal, now);
  member_.emplace(join, terms, timing, *store_, journal, now);
  thread_ = std::thread([this] { run(); });
}

Session::~Session() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Session::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    try {
      step();
    } catch (const StoreLost& error) {
      lost_ = error.what();
    } catch (const std::exception&) {
      error_ = std::current_exception();
    }
    if (!lost_.empty() || error_) {
      send_change();
      return;
    }
    wake_.wait_for(lock, kStep, [this] { return ending_ || woken_; });
    woken_ = false;
  }
}

void Session::step() {
  const core::SteadyTime now = core::now();
  if (leader_) leader_->step(now);
  member_->report_silence(own_silence_);
  member_->step(now);
  job_silence_ = member_->job_silence();
  const JobState& state = member_->state();
  finished_ = leader_ && leader_->finished(now);
  std::string seen = fmt::format("{} {} {} {} {} {} {}", state.round, static_cast<int>(state.phase),
                                 state.verdicts, member_->rank().value_or(-1), finished_,
                                 state.lost.size(), state.reason);
  if (seen == seen_) return;
  seen_ = std::move(seen);
  send_change();
}

std::chrono::milliseconds Session::exchange_silence(std::chrono::milliseconds own) {
  own_silence_ = own;
  return job_silence_;
}

void Session::send_change() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(changes_.get(), &one, sizeof one);
}

void Session::clear_changes() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(changes_.get(), &count, sizeof count);
}

Session::View Session::view() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return {.state = member_->state(),
          .rank = member_->rank(),
          .last = member_->last_round(),
          .leader_heartbeat = member_->leader_heartbeat(),
          .leads = leader_.has_value(),
          .ended = leader_ && leader_->ended(),
          .finished = finished_,
          .lost = lost_};
}

std::optional<Verdict> Session::take_verdict() {
  const std::lock_guard lock(mutex_);
  if (member_->verdicts().empty()) return std::nullopt;
  Verdict verdict = std::move(member_->verdicts().front());
  member_->verdicts().pop_front();
  return verdict;
}

template <class Say>
void Session::say(const Say& words) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty() || error_) return;
    try {
      words();
    } catch (const StoreLost& error) {
      lost_ = error.what();
      send_change();
    }
    woken_ = true;
  }
  wake_.notify_all();
}

void Session::report(const Report& report) {
  own_silence_ = std::chrono::milliseconds(0);  // until the next workers are watched
  say([&] { member_->report(report); });
}

void Session::report_lost(const LostReplica& lost) {
  say([&] { member_->report_lost(lost); });
}

void Session::publish(const Endpoint& workers_store, const std::string& plan) {
  say([&] { leader_->publish(workers_store, plan); });
}

void Session::leave(const Departure& departure) {
  say([&] { leader_ ? leader_->leave(departure, core::now()) : member_->leave(departure); });
}

}  // namespace scaletrain::launcher
