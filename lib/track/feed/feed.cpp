#include "lib/track/feed/feed.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

constexpr int kLookMs = 500;
constexpr int kEndingLookMs = 50;

}  // namespace

Feed::Feed(std::unique_ptr<Delivery> delivery)
    : delivery_(std::move(delivery)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) {
    throw core::Error(core::ExitCode::kMemory, "eventfd", core::errno_text(errno),
                      "check ulimit -n");
  }
  thread_ = std::thread([this] { run(); });
}

Feed::~Feed() {
  enter(Phase::kLeaving);
  thread_.join();
}

void Feed::end() { enter(Phase::kEnding); }

void Feed::enter(Phase phase) {
  phase_ = phase;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

bool Feed::wait_until(core::SteadyTime until) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [this] { return is_done_; });
}

void Feed::run() {
  bool is_finished = false;
  for (Phase phase = phase_; !is_finished && phase != Phase::kLeaving; phase = phase_) {
    delivery_->pump(phase == Phase::kEnding);
    if (phase == Phase::kEnding) is_finished = delivery_->finish();
    if (!is_finished) wait_and_serve(phase);
  }
  const std::lock_guard lock(mutex_);
  is_done_ = is_finished;
  changed_.notify_all();
}

// Serves the sink's socket until the phase changes or the next check of the file is due.
void Feed::wait_and_serve(Phase phase) {
  std::array<pollfd, 2> watched{pollfd{wake_.get(), POLLIN, 0},
                                pollfd{delivery_->socket(), POLLIN, 0}};
  const int wait_ms = phase == Phase::kFollowing ? kLookMs : kEndingLookMs;
  if (poll(watched.data(), watched.size(), wait_ms) <= 0) return;
  std::uint64_t count = 0;
  if (watched[0].revents != 0) {
    [[maybe_unused]] const ssize_t emptied = read(wake_.get(), &count, sizeof count);
  }
  if (watched[1].revents != 0) delivery_->serve();
}

}  // namespace scaletrain::track
