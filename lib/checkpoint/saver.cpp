#include "lib/checkpoint/saver.h"

#include <chrono>
#include <utility>

#include "lib/core/clock.h"

namespace scaletrain::checkpoint {
namespace {

constexpr std::size_t kCopies = 2;  // in memory at once: one is written, one waits
constexpr std::chrono::milliseconds kLook{100};

std::int64_t bytes_at(const std::filesystem::path& checkpoint) {
  std::int64_t bytes = 0;
  for (const auto& [name, entry] : format::read_manifest(checkpoint).files) bytes += entry.bytes;
  return bytes;
}

}  // namespace

struct Saver::Write {
  HostCopies copies;
  const Contents* contents = nullptr;  // the caller's, who waits; nullptr: the copies
  double stall_s = 0;
};

struct Saver::Outcome {
  Saved saved;
  std::exception_ptr error;  // then nothing was saved
};

Saver::Saver(core::Disk& disk, SaverOptions options, std::function<void()> beat)
    : options_(std::move(options)),
      beat_(std::move(beat)),
      disk_(disk, [this] { made_progress_ = true; }),
      thread_([this] { run(); }) {}

Saver::~Saver() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;  // the thread writes what was begun first
  }
  changed_.notify_all();
  thread_.join();
}

void Saver::save(const Contents& contents) {
  const core::SteadyTime start = core::now();
  std::unique_lock lock(mutex_);
  wait(lock, options_.beside ? kCopies - 1 : 0);
  if (free_.empty()) free_.push_back(std::make_unique<Write>());
  std::unique_ptr<Write> next = std::move(free_.back());
  free_.pop_back();
  lock.unlock();
  if (options_.beside) {
    next->copies.take(contents);
  } else {
    next->contents = &contents;
  }
  next->stall_s = core::seconds_since(start);
  lock.lock();
  under_way_.push_back(std::move(next));
  changed_.notify_all();
  if (!options_.beside) wait(lock, 0);
}

std::optional<Saved> Saver::next() {
  const std::lock_guard lock(mutex_);
  if (outcomes_.empty()) return std::nullopt;
  const std::unique_ptr<Outcome> outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  if (outcome->error) std::rethrow_exception(outcome->error);
  return outcome->saved;
}

void Saver::finish() {
  std::unique_lock lock(mutex_);
  wait(lock, 0);
}

void Saver::wait(std::unique_lock<std::mutex>& lock, std::size_t most) {
  while (under_way_.size() > most) {
    if (made_progress_.exchange(false)) beat_();
    changed_.wait_for(lock, kLook);
  }
}

Saver::Outcome Saver::write(Write& one) {
  const core::SteadyTime start = core::now();
  Outcome outcome;
  Saved& saved = outcome.saved;
  try {
    const Contents& contents = one.contents != nullptr ? *one.contents : one.copies.contents();
    saved.step = contents.state.step;
    saved.path = checkpoint::save(disk_, options_.run, contents, options_.retention);
    saved.bytes = bytes_at(saved.path);
    saved.write_s = core::seconds_since(start);
    saved.stall_s = one.stall_s + (one.contents != nullptr ? saved.write_s : 0);
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

void Saver::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !under_way_.empty(); });
    if (under_way_.empty()) return;
    Write& writing = *under_way_.front();
    lock.unlock();
    Outcome outcome = write(writing);
    lock.lock();
    outcomes_.push_back(std::make_unique<Outcome>(std::move(outcome)));
    free_.push_back(std::move(under_way_.front()));
    under_way_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace scaletrain::checkpoint
