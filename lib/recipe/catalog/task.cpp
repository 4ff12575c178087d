#include "lib/recipe/catalog/task.h"

#include <fmt/format.h>

#include <algorithm>

namespace scaletrain::recipe {
namespace {

std::vector<TaskRow> make_tasks() {
  constexpr auto kHigher = Measure::Better::kHigher;
  constexpr auto kLower = Measure::Better::kLower;
  constexpr auto kShare = Measure::Kind::kShare;
  constexpr auto kNumber = Measure::Kind::kNumber;
  constexpr auto kImages = TaskRow::Reads::kImages;
  constexpr auto kTokens = TaskRow::Reads::kTokens;
  std::vector<TaskRow> rows;
#define MEASURE(name, label, better, kind) \
  Measure { #name, label, better, kind }
#define LOSSES(...) \
  { __VA_ARGS__ }
#define SCALETRAIN_TASK(name, help, reads, counted, losses, ...) \
  rows.push_back(TaskRow{#name, help, counted, losses, {__VA_ARGS__}, reads});
#include "lib/recipe/catalog/tasks.def"
#undef LOSSES
#undef MEASURE
  return rows;
}

}  // namespace

bool Measure::better_than(double value, double other) const {
  return better == Better::kHigher ? value > other : value < other;
}

std::string Measure::text(double value) const {
  return kind == Kind::kShare ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value);
}

const Measure* TaskRow::measure(std::string_view measure_name) const {
  const auto found = std::find_if(measures.begin(), measures.end(), [&](const Measure& measure) {
    return measure.name == measure_name;
  });
  return found == measures.end() ? nullptr : &*found;
}

const std::vector<TaskRow>& tasks() {
  static const std::vector<TaskRow> rows = make_tasks();
  return rows;
}

const TaskRow* find_task(std::string_view name) {
  const std::vector<TaskRow>& rows = tasks();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const TaskRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace scaletrain::recipe
