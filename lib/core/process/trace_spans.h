// Spans of a trace: named intervals on the wall clock that a profiler writes beside its operations.
//
// The profiler of a process records one trace at a time, so the spans belong to the process too.
// While no trace is recorded, a span costs one relaxed load. All functions may be called from any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::core {

struct TraceSpan {
  enum class Kind : std::uint8_t {
    kStep,        // one optimizer step
    kRow,         // a row of the time ledger; rows follow each other without gaps
    kCollective,  // from its start to its completion; collectives may overlap
    kThread       // of one thread: they are nested
  };

  std::string name = {};
  Kind kind = Kind::kThread;
  std::int64_t begin_ns = 0, end_ns = 0;  // since 1970
  std::int64_t thread = 0;                // thread number in the system
  std::string group = {};                 // collectives: name of the group
  std::int64_t bytes = 0;                 // collectives: bytes of this rank's tensors
};

class TraceSpans {
 public:
  static bool is_on() { return recording.load(std::memory_order_relaxed); }
  // Begins to record, without the spans of an earlier trace.
  static void start();
  // Ends recording; returns the spans that ended since start(), clipped to start there.
  static std::vector<TraceSpan> stop();
  // Records a span that has ended; does nothing while no trace is recorded.
  static void add(TraceSpan span);

  static std::int64_t wall_ns();        // nanoseconds since 1970
  static std::int64_t thread_number();  // number of the calling thread

 private:
  static std::atomic<bool> recording;
};

// Records a scope of the calling thread. `name` must outlive it.
class SpanScope {
 public:
  explicit SpanScope(const char* name)
      : name_(name), begin_ns_(TraceSpans::is_on() ? TraceSpans::wall_ns() : 0) {}
  ~SpanScope();
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;

 private:
  const char* const name_;
  const std::int64_t begin_ns_;  // 0: no trace was being recorded
};

}  // namespace scaletrain::core
