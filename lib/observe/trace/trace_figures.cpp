#include "lib/observe/trace/trace_figures.h"

#include <algorithm>

#include "lib/core/process/time_ledger.h"

namespace scaletrain::observe {
namespace {

bool is_wait(const std::string& row) {
  using core::TimeRow;
  return row == core::to_text(TimeRow::kDataWait) ||
         row == core::to_text(TimeRow::kCommunication) ||
         row == core::to_text(TimeRow::kCheckpoint);
}

bool computes(const std::string& row) {
  return !is_wait(row) && row != core::to_text(core::TimeRow::kOther) &&
         row != core::to_text(core::TimeRow::kStartUp);
}

}  // namespace

void FiguresOfTrace::add(const TimedEvent& event) {
  if (event.kind == EventKind::kRow) rows_[event.name].push_back(event.time);
  if (event.kind == EventKind::kCollective) collectives_.push_back(event.time);
}

TraceFigures FiguresOfTrace::figures() const {
  TraceFigures result;
  TimeIntervals all, busy, computing;
  for (const auto& [row, intervals] : rows_) {
    result.rows[row] = total_length(merged(intervals));
    all.insert(all.end(), intervals.begin(), intervals.end());
    if (!is_wait(row)) busy.insert(busy.end(), intervals.begin(), intervals.end());
    if (computes(row)) computing.insert(computing.end(), intervals.begin(), intervals.end());
  }
  all = merged(std::move(all));
  if (!all.empty()) result.window_ns = all.back().end - all.front().begin;
  result.idle_ns = result.window_ns - total_length(merged(std::move(busy)));
  const TimeIntervals collectives = merged(collectives_);
  result.communication_ns = total_length(collectives);
  result.overlap_ns = shared_length(collectives, merged(std::move(computing)));
  return result;
}

}  // namespace scaletrain::observe
