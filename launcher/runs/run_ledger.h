// The time ledger of a run for `explain run` and `report` (lib/observe/run_times.h).
#pragma once

#include <string>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// {"wall_s", "attempts", "goodput", "rows": [{"row", "label", "seconds", "percent", "remedy"}],
// "what_if": {"without_data_wait_s", "without_communication_s", "without_slowest_rank_s"}}; rows in
// the order of a step, "remedy" only where one applies. Null if the run has no ledger.
RunJson ledger_json(const RunRecord& run);

// Returns the rows from 0.5 % on, the largest first, then remedies and what-ifs; "" without a
// ledger.
std::string ledger_text(const RunRecord& run);

}  // namespace scaletrain::launcher
