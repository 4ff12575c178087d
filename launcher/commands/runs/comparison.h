// Differences of runs in recipe, code, data and results. Runs that differ only in their seed are
// one group, whose results have a mean and a standard deviation.
#pragma once

#include <string>
#include <vector>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// {"groups": [{"runs", "seeds"}], "recipe": [{"key", "values"}], "code": [{"name", "values"}],
// "data": [{"name", "values"}], "results": [{"name", "label", "values": [{"mean", "spread",
// "values", "steps"} or null], "difference"}]}. Lists of values have an entry for each group.
// `spread` is the sample standard deviation, null for one run; `difference` is the second mean less
// the first, null unless there are two groups.
RunJson compare_runs(const std::vector<RunRecord>& runs);

// The comparison as a table for a terminal of `width` columns (0: no limit): rows that differ, or
// with `all` every row. Long values are shortened so that their first difference stays visible.
std::string comparison_text(const RunJson& comparison, bool all, int width = 0);

}  // namespace scaletrain::launcher
