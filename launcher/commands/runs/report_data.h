// Runs as one JSON object: the data of a report page.
#pragma once

#include <vector>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// {"version", "generated", "runs": [...], "keys": [{"key", "values"}], "differences": likewise}. A
// run has "train" (a list for each field of metrics.jsonl, over the logged steps, bit for bit),
// "eval" (split > measure > "label", "step", "value"), "results", "time_parts", "times" (the time
// ledger), "devices" (energy and curves), "environment" without environment variables, "events",
// "pictures", "predictions" and "samples" (the files RUN/samples*.txt).
RunJson report_data(const std::vector<RunRecord>& runs);

}  // namespace scaletrain::launcher
