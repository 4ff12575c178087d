// What came of a run, from its metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/queue/queued_job.h"

namespace scaletrain::launcher {

struct RunResult {
  std::int64_t step = 0;             // the last that was written
  std::optional<double> train_loss;  // of that step
  std::string metric;                // what its recipe chooses the best by; "": it has not begun
  bool lower_is_better = false;
  std::optional<double> best, last;  // of the validations, by the metric
  std::optional<double> last_val_loss;
  double seconds = 0;  // trained, over all attempts
};

// Of a step that several attempts did, the last one counts; a torn line is passed over. All zero or
// empty where there is no file.
RunResult read_result(const std::filesystem::path& run);

enum class TableFormat { kText, kCsv, kJson };
TableFormat parse_table_format(const std::string& text);  // "text", "csv", "json"

// The jobs with their states and results, a row each, the varied keys as columns; ordered by
// number, or, where `best_first`, by the best validation.
std::string results_table(const std::vector<QueuedJob>& jobs, TableFormat format, bool best_first);

}  // namespace scaletrain::launcher
