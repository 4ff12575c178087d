// Measures of the tasks of lib/recipe/catalog/tasks.def, for the trainer and the launcher, which
// show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::recipe {

// One number that an evaluation gives.
struct Measure {
  enum class Better { kHigher, kLower };
  enum class Kind { kShare, kNumber };  // 0..1, shown as a percentage; shown as it is

  std::string name;   // in metrics.jsonl: "top1"
  std::string label;  // for a person: "top-1"
  Better better = Better::kLower;
  Kind kind = Kind::kNumber;

  // True if `value` is better than `other`.
  bool better_than(double value, double other) const;
  std::string text(double value) const;  // "98.48 %", "0.0812"
};

struct TaskRow {
  enum class Reads { kImages, kTokens };  // input of its models

  std::string name, help, counted;
  std::vector<std::string> losses;  // losses of losses.def that it accepts
  std::vector<Measure> measures;
  Reads reads = Reads::kImages;

  // nullptr where it has none of that name.
  const Measure* measure(std::string_view measure_name) const;
};

const std::vector<TaskRow>& tasks();
// nullptr where there is none of that name.
const TaskRow* find_task(std::string_view name);

// A measure with what it came to.
struct Measured {
  const Measure* measure = nullptr;
  double value = 0;
};

}  // namespace scaletrain::recipe
