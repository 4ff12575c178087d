#include "lib/report/evaluation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"
#include "lib/data/set/classes_file.h"

namespace scaletrain::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownClasses = 20, kShownMistakes = 10;

std::string shown_name(const ClassReport& report, std::int64_t number) {
  return core::printable(data::class_name(report.names, number));
}

std::string percent(std::int64_t right, std::int64_t count) {
  return count == 0 ? "-"
                    : fmt::format("{:.2f} %",
                                  100.0 * static_cast<double>(right) / static_cast<double>(count));
}

// Returns the numbers of classes that have samples, most mistakes first.
std::vector<std::size_t> worst_classes(const ClassReport& report) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    if (report.classes[i].count > 0) numbers.push_back(i);
  }
  const auto mistakes = [&report](std::size_t i) {
    return report.classes[i].count - report.classes[i].right;
  };
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&mistakes](std::size_t a, std::size_t b) { return mistakes(a) > mistakes(b); });
  return numbers;
}

std::string class_table(const ClassReport& report) {
  std::vector<std::size_t> shown = worst_classes(report);
  const std::size_t all = shown.size();
  if (all > kShownClasses) {
    shown.resize(kShownClasses);
  } else {
    std::sort(shown.begin(), shown.end());
  }
  std::vector<std::vector<std::string>> lines{{"class", "samples", "right", "accuracy"}};
  for (const std::size_t i : shown) {
    const ClassCount& one = report.classes[i];
    lines.push_back({shown_name(report, static_cast<std::int64_t>(i)), std::to_string(one.count),
                     std::to_string(one.right), percent(one.right, one.count)});
  }
  std::string text = core::text_table(lines);
  if (all > kShownClasses) {
    text += fmt::format("(those with the most mistakes of {} classes)\n", all);
  }
  return text;
}

std::string mistake_lines(const ClassReport& report) {
  struct Mistake {
    std::int64_t label = 0, predicted = 0, count = 0;
  };
  std::vector<Mistake> mistakes;
  for (const auto& [pair, count] : report.confusion) {
    if (pair.first != pair.second) mistakes.push_back({pair.first, pair.second, count});
  }
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.count > b.count; });
  std::string text;
  for (std::size_t i = 0; i < mistakes.size() && i < kShownMistakes; ++i) {
    text += fmt::format("  {} taken for {}: {}\n", shown_name(report, mistakes[i].label),
                        shown_name(report, mistakes[i].predicted), mistakes[i].count);
  }
  return text.empty() ? "" : "most frequent mistakes\n" + text;
}

Json class_json(const ClassReport& report) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    const ClassCount& one = report.classes[i];
    Json row{{"name", data::class_name(report.names, static_cast<std::int64_t>(i))},
             {"count", one.count},
             {"right", one.right},
             {"accuracy", nullptr}};
    if (one.count > 0) {
      row["accuracy"] = static_cast<double>(one.right) / static_cast<double>(one.count);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Stores triples, as most pairs of many classes never occur.
Json confusion_json(const ClassReport& report) {
  Json rows = Json::array();
  for (const auto& [pair, count] : report.confusion) {
    rows.push_back(Json::array({pair.first, pair.second, count}));
  }
  return rows;
}

Json calibration_json(const Calibration& calibration) {
  return {{"bins", kCalibrationBins},
          {"error", calibration.error},
          {"temperature", calibration.temperature},
          {"loss_with_temperature", calibration.loss_with},
          {"error_with_temperature", calibration.error_with}};
}

}  // namespace

std::string evaluation_text(const Evaluation& evaluation) {
  std::string text =
      fmt::format("{}{} on {}: {} {}{}\n", core::printable(evaluation.checkpoint),
                  evaluation.weights == "model" ? "" : fmt::format(" ({})", evaluation.weights),
                  core::printable(evaluation.set), evaluation.count, evaluation.counted,
                  evaluation.skipped > 0 ? fmt::format(", {} left out", evaluation.skipped) : "");
  for (const auto& [measure, value] : evaluation.measures) {
    text += fmt::format("  {:<12} {}\n", measure->label, measure->text(value));
  }
  if (!evaluation.classes || evaluation.count == 0) return text;
  const Calibration& calibration = evaluation.classes->calibration;
  text += fmt::format(
      "  {:<12} {:.2f} % calibration error; by temperature {:.4f} {:.2f} %, loss {:.4f}\n",
      "confidence", 100 * calibration.error, calibration.temperature, 100 * calibration.error_with,
      calibration.loss_with);
  return text + class_table(*evaluation.classes) + mistake_lines(*evaluation.classes);
}

std::string evaluation_json(const Evaluation& evaluation) {
  Json json{{"checkpoint", evaluation.checkpoint},
            {"weights", evaluation.weights},
            {"step", evaluation.step},
            {"set", evaluation.set},
            {"count", evaluation.count},
            {"skipped", evaluation.skipped},
            {"measures", Json::object()}};
  for (const auto& [measure, value] : evaluation.measures) json["measures"][measure->name] = value;
  if (evaluation.classes) {
    json["classes"] = class_json(*evaluation.classes);
    json["confusion"] = confusion_json(*evaluation.classes);
    json["calibration"] = calibration_json(evaluation.classes->calibration);
  }
  return core::json_text(json, 1) + "\n";
}

std::string predictions_csv(const std::vector<std::string>& keys,
                            const std::vector<Prediction>& predictions,
                            const std::vector<std::string>& names) {
  std::vector<std::string> head{"key", "label", "predicted", "probability"};
  const std::size_t top = predictions.empty() ? 1 : predictions.front().top.size();
  for (std::size_t k = 2; k <= top; ++k) {
    head.push_back(fmt::format("predicted_{}", k));
    head.push_back(fmt::format("probability_{}", k));
  }
  std::string text = core::csv_line(head);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    std::vector<std::string> line{keys[i], data::class_name(names, predictions[i].label)};
    for (const Guess& guess : predictions[i].top) {
      line.push_back(data::class_name(names, guess.class_number));
      line.push_back(fmt::format("{}", static_cast<float>(guess.probability)));
    }
    text += core::csv_line(line);
  }
  return text;
}

}  // namespace scaletrain::report
