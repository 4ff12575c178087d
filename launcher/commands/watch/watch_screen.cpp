#include "launcher/commands/watch/watch_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "launcher/runs/run_results.h"
#include "lib/core/printable.h"
#include "lib/observe/plot.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;
using Points = std::vector<observe::PlotPoint>;

constexpr int kSideBySide = 80;        // minimum columns for two charts side by side
constexpr int kLeastChart = 3;         // rows
constexpr int kMostChart = 12;         // rows
constexpr int kRowsBesideCharts = 11;  // for everything else
constexpr int kShownRanks = 4;
constexpr int kLabel = 12;  // columns of a row's name

std::string title(const Json& status) {
  const Json& name = status["name"];
  std::string text = fmt::format("{}   {}", name.is_string() ? name.get<std::string>() : "a run",
                                 status["state"].get<std::string>());
  if (status["step"].is_number()) text += "   step " + status["step"].dump();
  if (status["step"].is_number() && status["total_steps"].is_number()) {
    text += "/" + status["total_steps"].dump();
  }
  if (status["left_s"].is_number()) {
    text += "   left " + observe::format_duration(status["left_s"].get<double>());
  }
  if (status["restart"].is_number()) text += "   restarts " + status["restart"].dump();
  return core::printable(text);
}

// A curve below `heading`, its name and newest value; one line if there is no point.
Lines chart(const std::string& heading, const Points& points, int width, int height) {
  if (points.empty()) return {heading};
  Lines lines = observe::draw_chart(points, width, height);
  lines.insert(lines.begin(), heading);
  return lines;
}

std::string loss_heading(const RunCurves& curves) {
  if (curves.loss.empty()) return "loss  no value yet";
  return fmt::format("loss  {:.4g}", curves.loss.back().y);
}

std::string validation_heading(const RunCurves& curves) {
  if (curves.validation.empty()) return "val  no value yet";
  return fmt::format("val {}  {}", measure_label(curves.measure),
                     value_text("val_" + curves.measure, curves.validation.back().y));
}

Lines beside(const Lines& left, const Lines& right, int width) {
  Lines lines;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    lines.push_back(observe::fit_columns(i < left.size() ? left[i] : "", width) + "  " +
                    (i < right.size() ? right[i] : ""));
  }
  return lines;
}

Lines charts(const RunCurves& curves, ScreenSize size) {
  const bool is_wide = size.width >= kSideBySide;
  // Besides its rows a chart has a title and an axis.
  const int room = size.height - kRowsBesideCharts;
  const int rows = std::clamp(is_wide ? room : room / 2 - 2, kLeastChart, kMostChart);
  const int width = is_wide ? (size.width - 2) / 2 : size.width;
  Lines loss = chart(loss_heading(curves), curves.loss, width, rows);
  const Lines validation = chart(validation_heading(curves), curves.validation, width, rows);
  if (is_wide) return beside(loss, validation, width);
  loss.insert(loss.end(), validation.begin(), validation.end());
  return loss;
}

void add_row(Lines& lines, const std::string& name, const std::string& text) {
  lines.push_back(fmt::format("{:<{}} {}", name, kLabel, text));
}

void add_sparkline(Lines& lines, const char* name, const Points& points, const std::string& value,
                   int width) {
  std::vector<double> values;
  for (const observe::PlotPoint& point : points) values.push_back(point.y);
  const int room = std::clamp(width - kLabel - observe::text_columns(value) - 3, 1, 40);
  add_row(lines, name, value + "  " + observe::sparkline(values, room));
}

void add_times(Lines& lines, const RunCurves& curves) {
  constexpr double kLeastShare = 0.01;
  std::vector<std::pair<std::string, double>> rows = curves.rows;
  double sum = 0;
  for (const auto& [name, seconds] : rows) sum += seconds;
  std::erase_if(rows, [sum](const auto& row) { return !(row.second >= kLeastShare * sum); });
  if (!(sum > 0)) return;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (auto& [name, seconds] : rows) {
    std::replace(name.begin(), name.end(), '_', ' ');
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : "  ", name, 100 * seconds / sum);
  }
  add_row(lines, "time", text);
}

void add_ranks(Lines& lines, const Json& status) {
  if (status["state"] != "running" && status["state"] != "dead") return;
  int shown = 0;
  for (const Json& rank : status["ranks"]) {
    if (shown++ == kShownRanks) {
      add_row(
          lines, "",
          fmt::format("and {} more ranks", static_cast<int>(status["ranks"].size()) - kShownRanks));
      return;
    }
    add_row(
        lines, fmt::format("rank {}", rank.value("rank", 0)),
        core::printable(fmt::format("step {}  {}  {:.1f} s since its last heartbeat  host {}",
                                    rank.value("step", std::int64_t{0}), rank.value("phase", ""),
                                    rank.value("silent_s", 0.0), rank.value("host", ""))));
  }
}

}  // namespace

std::vector<std::string> watch_screen(const Json& status, const RunCurves& curves,
                                      const std::vector<std::string>& last_lines, ScreenSize size) {
  Lines lines{title(status)};
  if (status["why"].is_string()) lines.push_back(core::printable(status["why"].get<std::string>()));
  for (std::string& line : charts(curves, size)) lines.push_back(std::move(line));
  if (!curves.lr.empty()) {
    add_sparkline(lines, "lr", curves.lr, fmt::format("{:.3g}", curves.lr.back().y), size.width);
    add_sparkline(lines, "throughput", curves.samples_per_s,
                  fmt::format("{:.0f} samples/s", curves.samples_per_s.back().y), size.width);
  }
  add_times(lines, curves);
  add_ranks(lines, status);
  const int room = std::max(size.height - static_cast<int>(lines.size()), 0);
  const int skipped = std::max(static_cast<int>(last_lines.size()) - room, 0);
  for (std::size_t i = static_cast<std::size_t>(skipped); i < last_lines.size(); ++i) {
    lines.push_back(core::printable(last_lines[i]));
  }
  if (static_cast<int>(lines.size()) > size.height) {
    lines.resize(static_cast<std::size_t>(std::max(size.height, 1)));
  }
  for (std::string& line : lines) {
    if (observe::text_columns(line) > size.width) line = observe::fit_columns(line, size.width);
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace scaletrain::launcher
