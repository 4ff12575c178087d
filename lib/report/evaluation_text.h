// Formats an evaluation as text, as JSON and as CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/task.h"
#include "lib/report/class_report.h"

namespace scaletrain::report {

struct Evaluation {
  std::string checkpoint;         // path
  std::string weights = "model";  // or "ema", "ema:0.999", "swa"
  std::string set;                // "val", "test", "extra/NAME", or a path
  std::int64_t step = 0, count = 0, skipped = 0;
  std::string counted;  // unit of `count`, such as "samples"
  std::vector<recipe::Measured> measures;
  std::optional<ClassReport> classes;  // for classifiers only
};

// Several lines of text; with more than 20 classes only those with the most mistakes.
std::string evaluation_text(const Evaluation& evaluation);

// A JSON object and a newline (docs/reference/evaluate.md).
std::string evaluation_json(const Evaluation& evaluation);

// CSV table "key,label,predicted,probability,..." with a line for each of `predictions`; `keys` are
// their samples' keys.
std::string predictions_csv(const std::vector<std::string>& keys,
                            const std::vector<Prediction>& predictions,
                            const std::vector<std::string>& names);

}  // namespace scaletrain::report
