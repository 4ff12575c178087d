#include "lib/checkpoint/saver.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "lib/checkpoint/share.h"
#include "lib/core/log.h"

namespace scaletrain::checkpoint {
namespace {

constexpr std::size_t kCopies = 2;  // copies in memory: one is being written, one waits
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

struct Saver::Write {
  std::unique_ptr<HostCopies> copies = std::make_unique<HostCopies>();
  const Contents* contents = nullptr;  // contents of a waiting caller; nullptr: use the copies
  double stall_s = 0;
  core::SteadyTime begun;

  const Contents& what() { return contents != nullptr ? *contents : copies->contents(); }
};

struct Saver::Outcome {
  Saved saved;
  std::exception_ptr error;  // set instead of the result
};

Saver::Saver(core::Disk& disk, SaverOptions options, std::function<void()> beat)
    : options_(std::move(options)),
      beat_(std::move(beat)),
      disk_(disk, [this] { last_operation_ = core::now(); }),
      thread_([this] { run(); }) {}

Saver::~Saver() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;  // the thread finishes all queued writes first
  }
  changed_.notify_all();
  thread_.join();
}

void Saver::save(const Contents& contents, core::SteadyTime since) {
  await_copies();
  std::unique_lock lock(mutex_);
  wait(lock, options_.beside ? kCopies - 1 : 0);
  if (free_.empty()) free_.push_back(std::make_unique<Write>());
  std::unique_ptr<Write> next = std::move(free_.back());
  free_.pop_back();
  lock.unlock();
  const Writers* const writers = options_.writers.get();
  Contents share;
  const bool is_share = writers != nullptr || options_.incremental;
  if (is_share) {
    share = share_of(contents, writers != nullptr ? writers->rank() : 0,
                     writers != nullptr ? writers->count() : 1);
  }
  const Contents& own = is_share ? share : contents;
  const bool is_copied = options_.beside && begin_copy(own, *next);
  copied_ = is_copied ? next.get() : nullptr;
  next->contents = is_copied ? nullptr : &own;
  next->begun = last_operation_ = core::now();
  next->stall_s = core::seconds_since(since);
  lock.lock();
  under_way_.push_back(std::move(next));
  changed_.notify_all();
  if (!is_copied) wait(lock, 0);
}

void Saver::await_copies() {
  if (copied_ == nullptr) return;
  const core::SteadyTime since = core::now();
  copied_->copies->finish();
  const std::lock_guard lock(mutex_);
  std::exchange(copied_, nullptr)->stall_s += core::seconds_since(since);
}

bool Saver::begin_copy(const Contents& contents, Write& write) {
  try {
    write.copies->begin(contents);
    return true;
    // LibTorch throws its generic class if an allocator has no own error.
  } catch (const std::exception& error) {
    if (!std::exchange(has_warned_, true)) {
      core::warn(
          "a checkpoint cannot be copied in memory, so training waits until it is written: {}",
          std::string_view(error.what()).substr(0, std::string_view(error.what()).find('\n')));
    }
    write.copies = std::make_unique<HostCopies>();
    return false;
  }
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

void Saver::finish_after_failure() {
  if (options_.writers) options_.writers->hurry();
  finish();
}

double Saver::stands_still_s() {
  const std::lock_guard lock(mutex_);
  return under_way_.empty() ? 0 : core::seconds_since(last_operation_);
}

void Saver::wait(std::unique_lock<std::mutex>& lock, std::size_t most) {
  core::SteadyTime seen;
  while (under_way_.size() > most) {
    const core::SteadyTime last = last_operation_;
    if (std::exchange(seen, last) != last) beat_();
    changed_.wait_for(lock, kLook);
  }
}

// Writes a share on a rank other than 0. Rank 0 reports the outcome, unless rank 0 is lost.
void Saver::follow(const Contents& share) {
  try {
    write_share(disk_, options_.run, share, *options_.writers, kept());
  } catch (const std::exception& error) {
    core::warn("this rank's part of the checkpoint of step {} was not written: {}",
               share.state.step, error.what());
  }
}

void Saver::write(Write& one) {
  if (options_.writers && options_.writers->rank() != 0) {
    const Contents& share = one.what();
    follow(share);
    return options_.published({.path = {}, .step = share.state.step}, [] {});
  }
  Saved saved;
  const auto attempt = [this](const std::function<void()>& body) {
    Outcome outcome;
    try {
      body();
      return true;
    } catch (...) {
      outcome.error = std::current_exception();
    }
    add(std::move(outcome));
    return false;
  };
  const bool is_durable = attempt([&] {
    const Contents& contents = one.what();
    saved.step = contents.state.step;
    std::function<void()> read_back;
    if (!has_read_back_) read_back = [this] { last_operation_ = core::now(); };
    Written written = checkpoint::write(disk_, options_.run, contents, options_.writers.get(),
                                        kept(), options_.housekeeping.get(), read_back);
    has_read_back_ = true;
    saved.path = std::move(written.path);
    saved.bytes = written.bytes;
    saved.linked_bytes = written.linked;
  });
  if (!is_durable) return;
  saved.write_s = core::seconds_since(one.begun);
  {
    const std::lock_guard lock(mutex_);
    saved.stall_s = one.stall_s + (one.contents != nullptr ? saved.write_s : 0);
  }
  const std::int64_t step = saved.step;
  add({.saved = saved, .error = nullptr});
  attempt([&] { options_.published(saved, [this] { last_operation_ = core::now(); }); });
  attempt([&] { settle(disk_, options_.run, step, options_.retention, *options_.housekeeping); });
}

void Saver::add(Outcome outcome) {
  const std::lock_guard lock(mutex_);
  outcomes_.push_back(std::make_unique<Outcome>(std::move(outcome)));
}

void Saver::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !under_way_.empty(); });
    if (under_way_.empty()) return;
    Write& writing = *under_way_.front();
    lock.unlock();
    write(writing);
    lock.lock();
    free_.push_back(std::move(under_way_.front()));
    under_way_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace scaletrain::checkpoint
