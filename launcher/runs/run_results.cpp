#include "launcher/runs/run_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "launcher/runs/run_devices.h"
#include "lib/observe/progress_text.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::launcher {
namespace {

// The measure of a field of an "eval" record; nullptr for `count`, `step` and the like.
const recipe::Measure* measure_named(const std::string& name) {
  for (const recipe::TaskRow& task : recipe::tasks()) {
    if (const recipe::Measure* const measure = task.measure(name)) return measure;
  }
  return nullptr;
}

// Returns the metric in "val_top1", after the split; "" if the name does not end with a metric.
std::string measure_part(const std::string& name) {
  for (std::size_t at = name.find('_'); at != std::string::npos; at = name.find('_', at + 1)) {
    if (measure_named(name.substr(at + 1)) != nullptr) return name.substr(at + 1);
  }
  return "";
}

std::optional<RunValue> best_of(const RunRecord& run, const std::string& split,
                                const recipe::Measure& measure) {
  std::optional<RunValue> best;
  for (const auto& [step, value] : eval_curve(run, split, measure.name)) {
    if (best && !measure.better_than(value, best->value)) continue;
    best = RunValue{.name = split + "_" + measure.name,
                    .label = split + " " + measure.label,
                    .value = value,
                    .higher_is_better = measure.better == recipe::Measure::Better::kHigher,
                    .step = step};
  }
  return best;
}

void add_evaluations(const RunRecord& run, std::vector<RunValue>& values) {
  std::vector<std::string> splits;
  for (const auto& [split, records] : run.evaluated) splits.push_back(split);
  std::stable_partition(splits.begin(), splits.end(),
                        [](const std::string& split) { return split == "val"; });
  for (const std::string& split : splits) {
    const RunJson& record = run.evaluated.at(split).rbegin()->second;
    for (const auto& field : record.items()) {
      const recipe::Measure* const measure = measure_named(field.key());
      if (measure == nullptr) continue;
      if (std::optional<RunValue> best = best_of(run, split, *measure)) {
        values.push_back(std::move(*best));
      }
    }
  }
}

double middle_of(const RunCurve& curve) {
  std::vector<double> sorted;
  sorted.reserve(curve.size());
  for (const auto& [step, value] : curve) sorted.push_back(value);
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

void add_model_speed(const RunRecord& run, std::vector<RunValue>& values) {
  if (const RunCurve flops = train_curve(run, "step_flops"); !flops.empty()) {
    values.push_back(
        {.name = "step_flops", .label = value_label("step_flops"), .value = flops.back().second});
  }
  for (const char* const name : {"tflops_per_s", "mfu"}) {
    const RunCurve speeds = train_curve(run, name);
    if (speeds.empty()) continue;
    values.push_back({.name = name,
                      .label = value_label(name),
                      .value = middle_of(speeds),
                      .higher_is_better = true});
  }
}

void add_energy(const RunRecord& run, std::vector<RunValue>& values) {
  const observe::RunEnergy energy = observe::run_energy(run.folder);
  const observe::RunBill bill = observe::bill_of(energy, cost_rates(run.recipe));
  const auto add = [&values](const char* name, std::optional<double> value) {
    if (value) values.push_back({.name = name, .label = value_label(name), .value = *value});
  };
  add("kwh", energy.kwh());
  add("cost", bill.money());
  add("carbon_g", bill.carbon_g);
}

// "1,144" of 1144.2
std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace

std::vector<RunValue> run_results(const RunRecord& run) {
  std::vector<RunValue> values;
  add_evaluations(run, values);
  if (const RunCurve losses = train_curve(run, "loss"); !losses.empty()) {
    values.push_back({.name = "loss",
                      .label = "loss",
                      .value = losses.back().second,
                      .step = losses.back().first});
  }
  if (const RunCurve speeds = train_curve(run, "samples_per_s"); !speeds.empty()) {
    values.push_back({.name = "samples_per_s",
                      .label = value_label("samples_per_s"),
                      .value = middle_of(speeds),
                      .higher_is_better = true});
  }
  add_model_speed(run, values);
  if (const RunCurve peaks = train_curve(run, "memory_bytes"); !peaks.empty()) {
    double highest = 0;
    for (const auto& [step, value] : peaks) highest = std::max(highest, value);
    values.push_back(
        {.name = "memory_bytes", .label = value_label("memory_bytes"), .value = highest});
  }
  if (!run.attempts.empty()) {
    values.push_back(
        {.name = "seconds", .label = value_label("seconds"), .value = trained_seconds(run)});
  }
  if (!run.trained.empty()) {
    values.push_back({.name = "step",
                      .label = "step",
                      .value = static_cast<double>(run.trained.rbegin()->first),
                      .higher_is_better = true});
  }
  if (!run.attempts.empty()) {
    values.push_back({.name = "attempts",
                      .label = "attempts",
                      .value = static_cast<double>(run.attempts.size())});
  }
  add_energy(run, values);
  return values;
}

const RunValue* find_value(const std::vector<RunValue>& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const RunValue& value) { return value.name == name; });
  return found == values.end() ? nullptr : &*found;
}

std::string measure_label(const std::string& name) {
  const recipe::Measure* const measure = measure_named(name);
  return measure != nullptr ? measure->label : name;
}

std::string value_label(const std::string& name) {
  static const std::map<std::string, std::string> labels{{"samples_per_s", "samples/s"},
                                                         {"step_flops", "FLOPs a step"},
                                                         {"tflops_per_s", "TFLOP/s"},
                                                         {"mfu", "MFU"},
                                                         {"memory_bytes", "memory"},
                                                         {"seconds", "time"},
                                                         {"kwh", "energy"},
                                                         {"carbon_g", "carbon"}};
  if (const auto found = labels.find(name); found != labels.end()) return found->second;
  const std::string measure = measure_part(name);
  if (measure.empty()) return name;
  const std::string split = name.substr(0, name.size() - measure.size() - 1);
  return fmt::format("{} {}", split, measure_label(measure));
}

std::string value_text(const std::string& name, double value) {
  if (name == "seconds") {
    constexpr double kShortS = 10;  // whole seconds would hide differences
    return value < kShortS ? fmt::format("{:.1f}s", value) : observe::format_duration(value);
  }
  if (name == "memory_bytes") return fmt::format("{:.2f} GB", value / 1e9);
  if (name == "step_flops" || name == "tflops_per_s") return fmt::format("{:.4g}", value);
  if (name == "mfu") return fmt::format("{:.1f} %", 100 * value);
  if (name == "kwh") return fmt::format("{:.3g} kWh", value);
  if (name == "cost") return fmt::format("{:.2f}", value);
  if (name == "carbon_g") return observe::carbon_text(value);
  if (name == "step" || name == "attempts") return grouped(value);
  if (name == "samples_per_s") return value < 100 ? fmt::format("{:.1f}", value) : grouped(value);
  const recipe::Measure* const measure = measure_named(measure_part(name));
  return measure != nullptr ? measure->text(value) : fmt::format("{:.4f}", value);
}

std::string local_time(double unix_s) {
  if (unix_s <= 0) return "-";
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

std::optional<double> start_time(const RunRecord& run) {
  std::optional<double> first;
  for (const auto& [attempt, span] : run.attempts) {
    first = std::min(first.value_or(span.first), span.first);
  }
  return first;
}

}  // namespace scaletrain::launcher
