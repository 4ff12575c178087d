// Time ledger of one rank: every second of its training thread belongs to exactly one row.
//
// The ledger is a state machine with one current row and one clock reading at each change of the
// row. Rows therefore never overlap, and their sums equal the wall time by construction. A
// TimeScope books the time until its end on its row and interrupts the row around it.
//
// A ledger belongs to a thread and scopes find it there. Modules that only wait or compute, such as
// lib/dist and lib/engine, need no reference to it, and the threads of the data loader, which work
// at the same time, have none. A scope on a thread without a ledger does nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

namespace scaletrain::core {

enum class TimeRow : std::uint8_t {
  kStartUp,        // until the first step: imports, data, model, connections, a checkpoint's load
  kDataWait,       // the next batch is not ready
  kHostToDevice,   // copy of a batch to the device, normalization, mixup
  kForward,        // also what prepares a step
  kBackward,       // also recomputed activations
  kCommunication,  // exposed communication: training waits in a collective
  kOptimizer,      // clipping, update, EMA
  kEvaluation,
  kCheckpoint,  // training waits for a checkpoint
  kOther
};
inline constexpr std::size_t kTimeRows = 10;

// Seconds by row.
using RowSeconds = std::array<double, kTimeRows>;

// Name of a row in metrics.jsonl: "data_wait".
std::string_view to_text(TimeRow row);
// Sum of all rows.
double sum_of(const RowSeconds& seconds);

// Clock of a device, whose work is queued ahead of it: the ledger places a mark into the queue
// where a row begins, and the times between marks are known once the device has passed them.
class TimeMarks {
 public:
  virtual ~TimeMarks() = default;
  virtual void place() = 0;
  // Seconds between the two oldest marks; forgets the older one. nullopt if there are not two, or
  // the device has not passed the second; with `waits` it waits for that.
  virtual std::optional<double> next(bool waits) = 0;
};

class TimeLedger {
 public:
  using Clock = std::int64_t (*)();  // nanoseconds of a monotonic clock

  // Begins in kStartUp.
  explicit TimeLedger(Clock clock = monotonic_ns);
  TimeLedger(const TimeLedger&) = delete;
  TimeLedger& operator=(const TimeLedger&) = delete;

  // The calling thread's ledger; nullptr if it has none.
  static TimeLedger* of_thread() { return current; }

  // Takes times from a device's queue from now on. Call while the queue is empty.
  void use(std::unique_ptr<TimeMarks> marks);

  // Begins `row` and returns the row before it. Start-up, evaluation and checkpoints cover what
  // happens inside them: there the row stays.
  TimeRow enter(TimeRow row);
  // Returns to `row`, which enter() has returned; at the end of start-up, begins it.
  void leave(TimeRow row);
  TimeRow row() const { return row_; }

  // Seconds by row since the ledger was made; of a device those that are known.
  RowSeconds total();
  // Seconds by row since the last call, so that all calls sum to the wall time. With `waits`, on a
  // device, waits for all work that is queued.
  RowSeconds take(bool waits = false);

  // Ends the current row's span of a trace (trace_spans.h), as each change of the row does. Call it
  // before TraceSpans::stop(). On a device, spans are the host's time, in which work is queued.
  void end_span();

  static std::int64_t monotonic_ns();

 private:
  friend class LedgerOfThread;
  void change(TimeRow row);
  void book(bool waits);

  static thread_local TimeLedger* current;
  const Clock clock_;
  std::int64_t mark_;  // until then all time is booked
  TimeRow row_ = TimeRow::kStartUp;
  std::int64_t span_begin_ns_ = 0;  // wall clock, where a trace has recorded a change of the row
  std::array<std::int64_t, kTimeRows> spent_ns_{};
  RowSeconds taken_{};
  std::unique_ptr<TimeMarks> marks_;  // nullptr: the clock of the host
  std::deque<TimeRow> marked_;        // rows that begin at the marks, whose ends are not known
};

// While it exists, `ledger` is the calling thread's: the one that trains, or a thread that works
// while that one waits for it, as the backward thread of a device does. nullptr: none.
class LedgerOfThread {
 public:
  explicit LedgerOfThread(TimeLedger* ledger);
  ~LedgerOfThread();
  LedgerOfThread(const LedgerOfThread&) = delete;
  LedgerOfThread& operator=(const LedgerOfThread&) = delete;

 private:
  TimeLedger* const before_;
};

class TimeScope {
 public:
  explicit TimeScope(TimeRow row) : ledger_(TimeLedger::of_thread()) {
    if (ledger_ != nullptr) before_ = ledger_->enter(row);
  }
  ~TimeScope() {
    if (ledger_ != nullptr) ledger_->leave(before_);
  }
  TimeScope(const TimeScope&) = delete;
  TimeScope& operator=(const TimeScope&) = delete;

 private:
  TimeLedger* const ledger_;
  TimeRow before_ = TimeRow::kOther;
};

}  // namespace scaletrain::core
