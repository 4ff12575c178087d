// Time ledger of one rank: every second of its training thread belongs to exactly one row.
//
// The ledger is a state machine with one current row and one clock reading at each change of the
// row. Rows therefore never overlap, and their sums equal the wall time by construction. A
// TimeScope books the time from its start to its end on its row and interrupts the enclosing row.
//
// A ledger belongs to a thread, where scopes find it, so modules such as lib/dist and lib/engine
// need no reference to it. The threads of the data loader, which work at the same time, have none.
// A scope on a thread without a ledger does nothing.
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
  kStartUp,        // until the first step: imports, data, model, connections, loading a checkpoint
  kDataWait,       // the next batch is not ready
  kHostToDevice,   // copy of a batch to the device, normalization, mixup
  kForward,        // includes the preparation of a step
  kBackward,       // includes recomputed activations
  kCommunication,  // exposed communication: training waits in a collective
  kOptimizer,      // clipping, update, EMA
  kEvaluation,
  kCheckpoint,  // training waits for a checkpoint
  kOther
};
inline constexpr std::size_t kTimeRows = 10;

// Seconds by row.
using RowSeconds = std::array<double, kTimeRows>;

// Returns the name of a row in metrics.jsonl: "data_wait".
std::string_view to_text(TimeRow row);
// Returns the sum of all rows.
double sum_of(const RowSeconds& seconds);

// Clock of a device, which runs after the host that queues its work. The ledger queues a mark where
// a row begins; the time between two marks is known when the device has passed both.
class TimeMarks {
 public:
  virtual ~TimeMarks() = default;
  virtual void place() = 0;
  // Returns the seconds between the two oldest marks and drops the older one. nullopt if there are
  // not two, or the device has not passed the second one; `waits`: waits for it.
  virtual std::optional<double> next(bool waits) = 0;
};

class TimeLedger {
 public:
  using Clock = std::int64_t (*)();  // nanoseconds of a monotonic clock

  // Begins in kStartUp.
  explicit TimeLedger(Clock clock = monotonic_ns);
  TimeLedger(const TimeLedger&) = delete;
  TimeLedger& operator=(const TimeLedger&) = delete;

  // Returns the calling thread's ledger; nullptr if it has none.
  static TimeLedger* of_thread() { return current; }

  // From now on takes times from a device's queue. Call while the queue is empty.
  void use(std::unique_ptr<TimeMarks> marks);

  // Begins `row` and returns the previous one. Start-up, evaluation and checkpoints include
  // everything inside them: there the row does not change.
  TimeRow enter(TimeRow row);
  // Returns to `row`, the result of enter(); at the end of start-up, begins it.
  void leave(TimeRow row);
  TimeRow row() const { return row_; }

  // Seconds by row since the ledger was made; on a device, as far as known.
  RowSeconds total();
  // Seconds by row since the last call, so that all calls sum to the wall time. On a device,
  // `waits` waits for all queued work.
  RowSeconds take(bool waits = false);

  // Ends the current row's span of a trace (trace_spans.h), as each change of row does. Call before
  // TraceSpans::stop(). On a device, a span is the host's time, in which work is queued.
  void end_span();

  static std::int64_t monotonic_ns();

 private:
  friend class LedgerOfThread;
  void change(TimeRow row);
  void book(bool waits);

  static thread_local TimeLedger* current;
  const Clock clock_;
  std::int64_t mark_;  // all time before it is booked
  TimeRow row_ = TimeRow::kStartUp;
  // Wall clock of the last change of row that a trace has recorded.
  std::int64_t span_begin_ns_ = 0;
  std::array<std::int64_t, kTimeRows> spent_ns_{};
  RowSeconds taken_{};
  std::unique_ptr<TimeMarks> marks_;  // nullptr: clock of the host
  std::deque<TimeRow> marked_;        // rows that begin at the marks and have not ended yet
};

// While it exists, `ledger` is the calling thread's: that of the training thread, or of a thread
// that works while the training thread waits for it, such as a device's backward thread. nullptr:
// none.
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
