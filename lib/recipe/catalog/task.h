// Metrics of the tasks in lib/recipe/catalog/tasks.def, for the trainer and the launcher, which
// show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::recipe {

// One metric of an evaluation.
struct Measure {
  enum class Better { kHigher, kLower };
  // A share is 0..1 and shown in percent; a number is shown as it is.
  enum class Kind { kShare, kNumber };

  std::string name;   // name in metrics.jsonl: "top1"
  std::string label;  // name for people: "top-1"
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

  // Returns the metric of this name; nullptr if the task has none.
  const Measure* measure(std::string_view measure_name) const;
};

const std::vector<TaskRow>& tasks();
// Returns the task of this name; nullptr if there is none.
const TaskRow* find_task(std::string_view name);

// A metric with its value.
struct Measured {
  const Measure* measure = nullptr;
  double value = 0;
};

}  // namespace scaletrain::recipe
