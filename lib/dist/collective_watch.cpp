#include "lib/dist/collective_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/process/time_ledger.h"
#include "lib/core/process/trace_spans.h"
#include "lib/dist/lost_peer.h"

namespace scaletrain::dist {
namespace {

thread_local core::TimeRow row_before_call = core::TimeRow::kOther;
thread_local std::optional<core::TraceSpan> described;  // the collective that this thread starts

// Records the span when the collective completes. Works of NCCL are complete for their futures when
// they are queued; the profiler has their kernels.
void record_span(core::TraceSpan span, c10d::Work& work) {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  try {
    future = work.getFuture();
  } catch (const c10::Error&) {
    return;  // a work without a future: its completion is not reported
  }
  if (!future) return;
  future->addCallback([span = std::move(span)](c10::ivalue::Future&) mutable {
    span.end_ns = core::TraceSpans::wall_ns();
    core::TraceSpans::add(std::move(span));
  });
}

bool is_complete(c10d::Work& work) {
  try {
    return work.isCompleted() && work.exception() == nullptr;
  } catch (const std::exception&) {
    return true;  // the device is broken, which the thread that trains reports with the cause
  }
}

}  // namespace

CollectiveWatch::CollectiveWatch(Options options, core::Beat beat)
    : options_(std::move(options)), beat_(std::move(beat)) {}

// The time until started() counts as exposed communication: a backend without a queue communicates
// in the call; for others it is the duration of the call.
const char* CollectiveWatch::enter(const char* kind) {
  if (core::TimeLedger* const ledger = core::TimeLedger::of_thread()) {
    row_before_call = ledger->enter(core::TimeRow::kCommunication);
  }
  core::delay_if_planted(core::DelayPlace::kCollective);
  const char* const name = beat_.enter_collective(kind);
  if (options_.on_enter) options_.on_enter(kind, name);
  return name;
}

void CollectiveWatch::describe(const std::string& group, std::int64_t bytes) {
  described = core::TraceSpan{.kind = core::TraceSpan::Kind::kCollective,
                              .begin_ns = core::TraceSpans::wall_ns(),
                              .thread = core::TraceSpans::thread_number(),
                              .group = group,
                              .bytes = bytes};
}

void CollectiveWatch::started(const char* name, c10::intrusive_ptr<c10d::Work> work) {
  if (core::TimeLedger* const ledger = core::TimeLedger::of_thread()) {
    ledger->leave(row_before_call);
  }
  if (std::optional<core::TraceSpan> span = std::exchange(described, std::nullopt);
      span && work != nullptr && options_.on_host) {
    span->name = name;
    record_span(std::move(*span), *work);
  }
  const std::lock_guard lock(mutex_);
  under_way_.push_back({.name = name, .begun = core::now(), .work = std::move(work)});
}

void CollectiveWatch::begin(const char* kind, const char* name) {
  beat_.name_next(name);
  started(enter(kind), nullptr);
}

void CollectiveWatch::end() {
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [](const UnderWay& one) { return one.work == nullptr; });
  beat_.complete_collective();
}

void CollectiveWatch::add_abort(const void* owner, std::function<void()> abort) {
  const std::lock_guard lock(mutex_);
  aborts_.emplace_back(owner, std::move(abort));
}

void CollectiveWatch::remove_abort(const void* owner) {
  std::vector<std::pair<const void*, std::function<void()>>> removed;  // ends without the lock
  const std::lock_guard lock(mutex_);
  const auto kept = std::stable_partition(aborts_.begin(), aborts_.end(),
                                          [&](const auto& one) { return one.first != owner; });
  removed.assign(std::make_move_iterator(kept), std::make_move_iterator(aborts_.end()));
  aborts_.erase(kept, aborts_.end());
}

// Removes and returns the collectives whose work is over.
template <class IsOver>
std::vector<CollectiveWatch::UnderWay> CollectiveWatch::take(const IsOver& is_over) {
  const auto completed = std::stable_partition(
      under_way_.begin(), under_way_.end(),
      [&](const UnderWay& one) { return one.work == nullptr || !is_over(*one.work); });
  std::vector<UnderWay> taken(std::make_move_iterator(completed),
                              std::make_move_iterator(under_way_.end()));
  under_way_.erase(completed, under_way_.end());
  for (std::size_t i = 0; i < taken.size(); ++i) beat_.complete_collective();
  return taken;
}

std::exception_ptr CollectiveWatch::failure_of(const UnderWay& one, core::SteadyTime now) const {
  const std::string what = fmt::format("collective \"{}\" was", one.name);
  try {
    if (one.work != nullptr) {
      if (const std::exception_ptr cause = one.work->exception()) std::rethrow_exception(cause);
    }
    if (options_.limit.count() > 0 && now - one.begun > options_.limit) {
      throw_lost(
          options_.rank, what,
          fmt::format("after {:.1f} s", std::chrono::duration<double>(options_.limit).count()));
    }
    const bool heard = peer_lost_ != core::SteadyTime{};
    if (heard && now - std::max(peer_lost_, one.begun) >= kLastWordPatience) {
      throw_lost(options_.rank, what, "the launcher reports that a rank is gone");
    }
  } catch (const core::Error&) {
    return std::current_exception();
  } catch (const std::exception& cause) {
    try {
      throw_lost(options_.rank, what, cause);
    } catch (...) {
      return std::current_exception();
    }
  }
  return nullptr;
}

std::exception_ptr CollectiveWatch::find_failure(core::SteadyTime now) {
  if (peer_lost_ == core::SteadyTime{} && beat_.peer_is_lost()) peer_lost_ = now;
  for (const UnderWay& one : under_way_) {
    if (std::exception_ptr failure = failure_of(one, now)) return failure;
  }
  return nullptr;
}

void CollectiveWatch::look(core::SteadyTime now) {
  std::vector<UnderWay> completed;  // freed without holding the lock
  std::exception_ptr leaves_with;
  {
    const std::lock_guard lock(mutex_);
    completed = take(is_complete);
    if (!failure_) {
      failure_ = find_failure(now);
      failed_ = now;
      if (failure_ && !aborts_.empty()) {
        aborting_ = std::jthread([aborts = aborts_] {
          for (const auto& [owner, abort] : aborts) abort();
        });
      }
    }
    if (failure_ && !reported_ && now - failed_ >= kReturnPatience) leaves_with = failure_;
  }
  if (leaves_with) options_.leave(leaves_with);
}

void CollectiveWatch::settle(const c10d::Work& work) {
  check();
  std::vector<UnderWay> completed;  // ends without the lock
  const std::lock_guard lock(mutex_);
  completed = take(
      [&](c10d::Work& one) { return &one == &work && (options_.on_host || is_complete(one)); });
}

void CollectiveWatch::check() {
  const std::lock_guard lock(mutex_);
  if (!failure_) return;
  reported_ = true;
  std::rethrow_exception(failure_);
}

}  // namespace scaletrain::dist
