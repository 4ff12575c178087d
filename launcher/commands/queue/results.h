// Results of a run, from its metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/queue/queued_job.h"

namespace scaletrain::launcher {

struct RunResult {
  std::int64_t step = 0;             // last logged step
  std::optional<double> train_loss;  // at that step
  std::string metric;                // metric that selects the best; "": the run has not begun
  bool lower_is_better = false;
  std::optional<double> best, last;  // validation values of the metric
  std::optional<double> last_val_loss;
  double seconds = 0;  // training time over all attempts
};

// Reads the metrics of `run`; the last attempt of a repeated step counts, a torn line is skipped.
// All zero or empty if there is no file.
RunResult read_result(const std::filesystem::path& run);

enum class TableFormat { kText, kCsv, kJson };
TableFormat parse_table_format(const std::string& text);  // "text", "csv", "json"

// Returns the jobs with states and results, one row each, with the varied keys as columns; ordered
// by number or, if `best_first`, by the best validation.
std::string results_table(const std::vector<QueuedJob>& jobs, TableFormat format, bool best_first);

}  // namespace scaletrain::launcher
