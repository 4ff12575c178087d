#include "lib/train/rules/ledger_of_ranks.h"

#include <algorithm>
#include <cstddef>

namespace scaletrain::train {
namespace {

using core::TimeRow;

double seconds_of(const core::RowSeconds& rows, TimeRow row) {
  return rows[static_cast<std::size_t>(row)];
}

double own_seconds(const core::RowSeconds& rows) {
  return core::sum_of(rows) - seconds_of(rows, TimeRow::kCommunication);
}

// Own time in steps. Start-up, evaluation and checkpoints are left out: they differ between ranks
// for reasons that have nothing to do with the speed of their steps.
double own_step_seconds(const core::RowSeconds& rows) {
  const observe::OwnTimes times = own_times(rows);
  return times.data + times.compute;
}

}  // namespace

core::RowSeconds take_own_times(bool waits) {
  core::TimeLedger* const ledger = core::TimeLedger::of_thread();
  return ledger != nullptr ? ledger->take(waits) : core::RowSeconds{};
}

observe::OwnTimes own_times(const core::RowSeconds& rows) {
  return {.data = seconds_of(rows, TimeRow::kDataWait),
          .compute = seconds_of(rows, TimeRow::kHostToDevice) +
                     seconds_of(rows, TimeRow::kForward) + seconds_of(rows, TimeRow::kBackward) +
                     seconds_of(rows, TimeRow::kOptimizer),
          .checkpoint = seconds_of(rows, TimeRow::kCheckpoint)};
}

void append_for_ranks(std::vector<double>& values, const core::RowSeconds& rows, int rank,
                      int ranks) {
  const std::size_t begin = values.size() + static_cast<std::size_t>(rank) * core::kTimeRows;
  values.resize(values.size() + static_cast<std::size_t>(ranks) * core::kTimeRows);
  std::copy(rows.begin(), rows.end(), values.begin() + static_cast<std::ptrdiff_t>(begin));
}

observe::LedgerRecord ledger_of_ranks(std::span<const double> ranks) {
  const std::size_t count = ranks.size() / core::kTimeRows;
  observe::LedgerRecord record;
  core::RowSeconds mean{};
  std::vector<double> in_steps;
  double slowest = -1;
  for (std::size_t rank = 0; rank < count; ++rank) {
    core::RowSeconds rows{};
    for (std::size_t i = 0; i < core::kTimeRows; ++i) {
      rows[i] = ranks[rank * core::kTimeRows + i];
      mean[i] += rows[i] / static_cast<double>(count);
    }
    in_steps.push_back(own_step_seconds(rows));
    const double own = own_seconds(rows);
    if (own <= slowest) continue;
    slowest = own;
    record.rank = static_cast<int>(rank);
    record.seconds = rows;
  }
  if (count < 2) return record;
  record.mean = mean;
  std::ranges::sort(in_steps);
  record.straggler_s = in_steps[count - 1] - in_steps[count - 2];
  return record;
}

}  // namespace scaletrain::train
