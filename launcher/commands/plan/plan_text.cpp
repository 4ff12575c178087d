#include "launcher/commands/plan/plan_text.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "lib/observe/progress_text.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100, kKilo = 1000;

// Three digits with the unit of the size: "38.9 GB".
std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= kKilo && unit + 1 < kUnits.size(); ++unit) bytes /= kKilo;
  return fmt::format("{:.3g} {}", bytes, kUnits.at(unit));
}

// "1.92 s", "13 ms".
std::string step_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  return fmt::format("{:.3g} ms", seconds * kKilo);
}

std::string memory_lines(const Prediction& prediction) {
  const MemoryFit& memory = prediction.memory;
  std::string text;
  if (memory.capacity <= 0) {
    text = fmt::format("needs {} a rank (the memory of the device is unknown)\n",
                       bytes_text(memory.total()));
  } else {
    text = fmt::format("{}: {} of {} a rank ({} {})\n", memory.fits() ? "fits" : "does not fit",
                       bytes_text(memory.total()), bytes_text(memory.capacity),
                       memory.fits() ? "margin" : "missing",
                       bytes_text(memory.fits() ? memory.margin() : -memory.margin()));
  }
  for (const MemoryShare& one : memory.shares) {
    text += fmt::format("  {:<12} {}\n", one.kind, bytes_text(one.bytes));
  }
  return text;
}

std::string step_lines(const PlanReport& report) {
  const StepTime& time = report.prediction.time;
  if (time.total() <= 0) return "step: unknown\n";
  std::string text = fmt::format("step {} ({})\n", step_text(time.total()), report.accuracy);
  text += fmt::format("  forward {}  backward {}  optimizer {}", step_text(time.forward),
                      step_text(time.backward), step_text(time.optimizer));
  if (time.idle > 0) text += fmt::format("  pipeline bubble {}", step_text(time.idle));
  if (time.communication > 0) {
    text += fmt::format("  communication exposed {} (of {})", step_text(time.exposed),
                        step_text(time.communication));
  }
  return text + "\n";
}

std::string run_lines(const PlanReport& report) {
  const Prediction& prediction = report.prediction;
  const RunCost& cost = prediction.cost;
  std::string text;
  if (prediction.steps > 0 && cost.seconds > 0) {
    text += fmt::format("{} steps: {}, {:.3g} device hours", prediction.steps,
                        observe::format_duration(cost.seconds), cost.device_hours);
    if (cost.kwh > 0) text += fmt::format(", at most {:.3g} kWh", cost.kwh);
    if (cost.money) text += fmt::format(", cost {:.2f}", *cost.money);
    if (cost.carbon_g) text += fmt::format(", at most {:.3g} kg CO2e", *cost.carbon_g / kKilo);
    text += "\n";
  }
  if (prediction.mfu) text += fmt::format("MFU {:.1f} %\n", kPercent * *prediction.mfu);
  return text;
}

std::string needs_lines(const PlanReport& report) {
  const Prediction& prediction = report.prediction;
  std::string text = fmt::format("needs: {:.4g} samples/s", prediction.cost.samples_per_s);
  if (prediction.cost.data_bytes_per_s > 0) {
    text += fmt::format(", {}/s of data", bytes_text(prediction.cost.data_bytes_per_s));
  }
  text += fmt::format(
      "\n  a checkpoint has {} and takes {} at {:.3g} GB/s; one each {} loses least time "
      "(Young/Daly, MTBF {:.3g} h)\n",
      bytes_text(prediction.saves.bytes), step_text(prediction.saves.write_s),
      report.target.storage_gb_s, observe::format_duration(prediction.saves.interval_s),
      prediction.mtbf_hours);
  return text;
}

std::string change_lines(const PlanReport& report) {
  if (report.heading.empty()) return "";
  std::string text = report.heading + "\n";
  const double base = report.prediction.time.total();
  for (std::size_t i = 0; i < report.changes.size(); ++i) {
    const auto& [variant, prediction] = report.changes[i];
    text +=
        fmt::format("  {}. {}: step {}", i + 1, variant.name, step_text(prediction.time.total()));
    if (base > 0) {
      text += fmt::format(" ({:+.1f} %)", kPercent * (prediction.time.total() / base - 1));
    }
    text += fmt::format(", {} a rank\n    ", bytes_text(prediction.memory.total()));
    for (const std::string& one : variant.overrides) text += fmt::format(" --set {}", one);
    text += "\n";
  }
  return report.changes.empty() ? text + "  none of those that were tried\n" : text;
}

Json prediction_json(const Prediction& prediction) {
  Json shares;
  for (const MemoryShare& one : prediction.memory.shares) shares[one.kind] = one.bytes;
  const StepTime& time = prediction.time;
  Json json{{"fits", prediction.memory.fits()},
            {"memory_bytes", prediction.memory.total()},
            {"capacity_bytes", prediction.memory.capacity},
            {"memory", std::move(shares)},
            {"memory_was_measured", prediction.memory_was_measured},
            {"step_s", time.total()},
            {"step",
             {{"forward_s", time.forward},
              {"backward_s", time.backward},
              {"idle_s", time.idle},
              {"optimizer_s", time.optimizer},
              {"communication_s", time.communication},
              {"exposed_s", time.exposed}}},
            {"steps", prediction.steps},
            {"global_batch", prediction.global_batch},
            {"seconds", prediction.cost.seconds},
            {"device_hours", prediction.cost.device_hours},
            {"kwh", prediction.cost.kwh},
            {"samples_per_s", prediction.cost.samples_per_s},
            {"data_bytes_per_s", prediction.cost.data_bytes_per_s},
            {"checkpoint_bytes", prediction.saves.bytes},
            {"checkpoint_write_s", prediction.saves.write_s},
            {"checkpoint_interval_s", prediction.saves.interval_s}};
  if (prediction.cost.money) json["cost"] = *prediction.cost.money;
  if (prediction.cost.carbon_g) json["carbon_g"] = *prediction.cost.carbon_g;
  if (prediction.mfu) json["mfu"] = *prediction.mfu;
  return json;
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  std::string text = memory_lines(report.prediction) + step_lines(report) + run_lines(report) +
                     needs_lines(report) + change_lines(report);
  for (const std::string& note : report.prediction.notes) text += fmt::format("note: {}\n", note);
  return text;
}

Json plan_json(const PlanReport& report) {
  Json json{{"device", report.target.device},
            {"nproc", report.target.nproc},
            {"nodes", report.target.nodes},
            {"accuracy", report.accuracy}};
  json.update(prediction_json(report.prediction));
  json["notes"] = report.prediction.notes;
  json["changes"] = Json::array();
  for (const RankedVariant& one : report.changes) {
    Json change{{"name", one.variant.name}, {"set", one.variant.overrides}};
    change.update(prediction_json(one.prediction));
    json["changes"].push_back(std::move(change));
  }
  return json;
}

}  // namespace scaletrain::launcher
