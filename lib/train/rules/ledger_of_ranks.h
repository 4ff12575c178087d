// The time ledgers of all ranks in one exchange: each rank sends its rows between zeros, and the
// maximum over the ranks has the rows of all.
#pragma once

#include <span>
#include <vector>

#include "lib/core/process/time_ledger.h"
#include "lib/observe/metrics.h"
#include "lib/observe/stragglers.h"

namespace scaletrain::train {

// Seconds by row of the calling thread's ledger since the last call; all 0 without a ledger.
core::RowSeconds take_own_times(bool waits);

// A rank's own times: `compute` is all of a step but data wait and exposed communication.
observe::OwnTimes own_times(const core::RowSeconds& rows);

// Appends kTimeRows values for each rank: `rows` for `rank`, zeros for the others.
void append_for_ranks(std::vector<double>& values, const core::RowSeconds& rows, int rank,
                      int ranks);

// The record of the slowest rank, without attempt and step. `ranks`: kTimeRows values for each.
observe::LedgerRecord ledger_of_ranks(std::span<const double> ranks);

}  // namespace scaletrain::train
