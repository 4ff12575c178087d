// An evaluation for a person, for a program and for a spreadsheet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/task.h"
#include "lib/report/class_report.h"

namespace scaletrain::report {

struct Evaluation {
  std::string checkpoint;         // its path
  std::string weights = "model";  // or "ema", "ema:0.999", "swa"
  std::string set;                // "val", "test", "extra/NAME", or a path
  std::int64_t step = 0, count = 0, skipped = 0;
  std::string counted;  // what is counted: "samples"
  std::vector<recipe::Measured> measures;
  std::optional<ClassReport> classes;  // of a classifier
};

// Lines, each with its newline; of many classes those with the most mistakes.
std::string evaluation_text(const Evaluation& evaluation);

// One object, with its newline (docs/reference/evaluate.md).
std::string evaluation_json(const Evaluation& evaluation);

// "key,label,predicted,probability,..." and a line for each of `predictions`, whose keys are
// `keys`.
std::string predictions_csv(const std::vector<std::string>& keys,
                            const std::vector<Prediction>& predictions,
                            const std::vector<std::string>& names);

}  // namespace scaletrain::report
