#include "lib/core/process/trace_spans.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

namespace scaletrain::core {
namespace {

struct RecordedSpans {
  std::mutex mutex;
  std::int64_t started_ns = 0;
  std::vector<TraceSpan> spans;
};

RecordedSpans& recorded_spans() {
  static RecordedSpans spans;
  return spans;
}

}  // namespace

std::atomic<bool> TraceSpans::recording{false};

void TraceSpans::start() {
  RecordedSpans& recorded = recorded_spans();
  const std::lock_guard lock(recorded.mutex);
  recorded.spans.clear();
  recorded.started_ns = wall_ns();
  recording = true;
}

std::vector<TraceSpan> TraceSpans::stop() {
  RecordedSpans& recorded = recorded_spans();
  const std::lock_guard lock(recorded.mutex);
  recording = false;
  return std::exchange(recorded.spans, {});
}

void TraceSpans::add(TraceSpan span) {
  RecordedSpans& recorded = recorded_spans();
  const std::lock_guard lock(recorded.mutex);
  if (!is_on()) return;
  span.begin_ns = std::max(span.begin_ns, recorded.started_ns);
  if (span.end_ns >= span.begin_ns) recorded.spans.push_back(std::move(span));
}

std::int64_t TraceSpans::wall_ns() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

std::int64_t TraceSpans::thread_number() { return ::syscall(SYS_gettid); }

SpanScope::~SpanScope() {
  if (begin_ns_ == 0 || !TraceSpans::is_on()) return;
  TraceSpans::add({.name = name_,
                   .begin_ns = begin_ns_,
                   .end_ns = TraceSpans::wall_ns(),
                   .thread = TraceSpans::thread_number()});
}

}  // namespace scaletrain::core
