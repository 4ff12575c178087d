#include "launcher/commands/watch/watch_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "launcher/runs/run_devices.h"
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
constexpr double kSmoothing = 0.9;
constexpr std::string_view kKeys = "q quit  s smooth  l log scale";

// The first line: what the run does, and the keys if there is room for them.
std::string title(const Json& status, int width, bool has_keys) {
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
  text = core::printable(text);
  const int gap = width - observe::text_columns(text) - static_cast<int>(kKeys.size());
  if (has_keys && gap >= 3)
    text += std::string(static_cast<std::size_t>(gap), ' ') + std::string(kKeys);
  return text;
}

// The end of a run in words, without the step that the first line has.
std::string reason(const Json& status) {
  if (!status["why"].is_string()) return "";
  const std::string why = core::printable(status["why"].get<std::string>());
  const std::string step = "step " + status["step"].dump() + ", ";
  return why.starts_with(step) ? why.substr(step.size()) : why;
}

// A curve below `heading`, its name and newest value; one line if there is no point.
Lines chart(const std::string& heading, const Points& points, int width, int height,
            const observe::AxisText& y_text = nullptr) {
  if (points.empty()) return {heading};
  Lines lines = observe::draw_chart(points, width, height, observe::Scale::kLinear, y_text);
  lines.insert(lines.begin(), heading);
  return lines;
}

std::string loss_heading(const RunCurves& curves, const WatchView& view) {
  if (curves.loss.empty()) return "loss  no value yet";
  return fmt::format("loss  {:.4g}{}{}", curves.loss.back().y, view.smooth ? "  smoothed" : "",
                     view.log_loss ? "  log scale" : "");
}

// The exponential moving average of the finite values, corrected for its start.
Points smoothed(const Points& points) {
  Points result;
  double sum = 0, weight = 0;
  for (const observe::PlotPoint& point : points) {
    if (!std::isfinite(point.y)) continue;
    sum = kSmoothing * sum + point.y;
    weight = kSmoothing * weight + 1;
    result.push_back({point.x, sum / weight});
  }
  return result;
}

Lines loss_chart(const RunCurves& curves, const WatchView& view, int width, int height) {
  Points points = view.smooth ? smoothed(curves.loss) : curves.loss;
  if (!view.log_loss) return chart(loss_heading(curves, view), points, width, height);
  std::erase_if(points, [](const observe::PlotPoint& point) { return !(point.y > 0); });
  for (observe::PlotPoint& point : points) point.y = std::log10(point.y);
  return chart(loss_heading(curves, view), points, width, height,
               [](double value) { return fmt::format("{:.4g}", std::pow(10, value)); });
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

Lines charts(const RunCurves& curves, ScreenSize size, const WatchView& view) {
  const bool is_wide = size.width >= kSideBySide;
  // Besides its rows a chart has a title and an axis.
  const int room = size.height - kRowsBesideCharts;
  const int rows = std::clamp(is_wide ? room : room / 2 - 2, kLeastChart, kMostChart);
  const int width = is_wide ? (size.width - 2) / 2 : size.width;
  Lines loss = loss_chart(curves, view, width, rows);
  const Lines validation =
      chart(validation_heading(curves), curves.validation, width, rows,
            [&](double value) { return value_text("val_" + curves.measure, value); });
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

void add_times(Lines& lines, const RunCurves& curves, int width) {
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
    const std::string one =
        fmt::format("{}{} {:.0f} %", text.empty() ? "" : "  ", name, 100 * seconds / sum);
    if (kLabel + 1 + static_cast<int>(text.size() + one.size()) > width) break;
    text += one;
  }
  add_row(lines, "time", text);
}

// The newest sample of each node and GPU, as in `status`.
void add_devices(Lines& lines, const Json& status) {
  constexpr std::size_t kMostDevices = 9;  // a node with eight GPUs
  const std::vector<DeviceRow> rows = device_rows(status.value("devices", Json::array()));
  for (std::size_t i = 0; i < std::min(rows.size(), kMostDevices); ++i) {
    add_row(lines, rows[i].name, core::printable(rows[i].text));
  }
  if (rows.size() > kMostDevices) {
    add_row(lines, "", fmt::format("and {} more devices", rows.size() - kMostDevices));
  }
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
                                      const std::vector<std::string>& last_lines, ScreenSize size,
                                      const WatchView& view) {
  Lines lines{title(status, size.width, view.has_keys)};
  if (const std::string why = reason(status); !why.empty()) lines.push_back(why);
  for (std::string& line : charts(curves, size, view)) lines.push_back(std::move(line));
  if (!curves.lr.empty()) {
    add_sparkline(lines, "lr", curves.lr, fmt::format("{:.3g}", curves.lr.back().y), size.width);
    add_sparkline(lines, "throughput", curves.throughput,
                  fmt::format("{:.0f} {}/s", curves.throughput.back().y,
                              curves.counts_tokens ? "tokens" : "samples"),
                  size.width);
  }
  add_times(lines, curves, size.width);
  add_ranks(lines, status);
  add_devices(lines, status);
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
