#include "lib/core/process/time_ledger.h"

#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/process/trace_spans.h"

namespace scaletrain::core {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr std::array<std::string_view, kTimeRows> kTimeRowNames{
    "start_up",  "data_wait",  "host_to_device",   "forward", "backward", "exposed_communication",
    "optimizer", "evaluation", "checkpoint_stall", "other"};

bool covers(TimeRow row) {
  return row == TimeRow::kStartUp || row == TimeRow::kEvaluation || row == TimeRow::kCheckpoint;
}

}  // namespace

thread_local TimeLedger* TimeLedger::current = nullptr;

std::string_view to_text(TimeRow row) { return kTimeRowNames.at(static_cast<std::size_t>(row)); }

double sum_of(const RowSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

std::int64_t TimeLedger::monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now().time_since_epoch()).count();
}

TimeLedger::TimeLedger(Clock clock) : clock_(clock), mark_(clock()) {}

void TimeLedger::use(std::unique_ptr<TimeMarks> marks) {
  book(/*waits=*/true);
  marks_ = std::move(marks);
  if (!marks_) return;
  marks_->place();
  marked_.push_back(row_);
}

TimeRow TimeLedger::enter(TimeRow row) {
  const TimeRow before = row_;
  if (!covers(before)) change(row);
  return before;
}

void TimeLedger::leave(TimeRow row) { change(row); }

void TimeLedger::change(TimeRow row) {
  if (row == row_) return;
  if (TraceSpans::is_on()) end_span();
  if (marks_) {
    marks_->place();
    marked_.push_back(row);
  } else {
    book(/*waits=*/false);
  }
  row_ = row;
}

void TimeLedger::end_span() {
  const std::int64_t time = TraceSpans::wall_ns();
  TraceSpans::add({.name = std::string(to_text(row_)),
                   .kind = TraceSpan::Kind::kRow,
                   .begin_ns = std::exchange(span_begin_ns_, time),
                   .end_ns = time,
                   .thread = TraceSpans::thread_number()});
}

void TimeLedger::book(bool waits) {
  if (!marks_) {
    const std::int64_t time = clock_();
    spent_ns_[static_cast<std::size_t>(row_)] += time - mark_;
    mark_ = time;
    return;
  }
  if (waits) {
    marks_->place();
    marked_.push_back(row_);
  }
  while (const std::optional<double> seconds = marks_->next(waits)) {
    spent_ns_[static_cast<std::size_t>(marked_.front())] += std::llround(*seconds * kNsPerSecond);
    marked_.pop_front();
  }
}

RowSeconds TimeLedger::total() {
  book(/*waits=*/false);
  RowSeconds result{};
  for (std::size_t i = 0; i < kTimeRows; ++i) {
    result[i] = static_cast<double>(spent_ns_[i]) / kNsPerSecond;
  }
  return result;
}

RowSeconds TimeLedger::take(bool waits) {
  if (waits) book(/*waits=*/true);
  const RowSeconds all = total();
  RowSeconds result{};
  for (std::size_t i = 0; i < kTimeRows; ++i) result[i] = all[i] - taken_[i];
  taken_ = all;
  return result;
}

LedgerOfThread::LedgerOfThread(TimeLedger* ledger)
    : before_(std::exchange(TimeLedger::current, ledger)) {}

LedgerOfThread::~LedgerOfThread() { TimeLedger::current = before_; }

}  // namespace scaletrain::core
