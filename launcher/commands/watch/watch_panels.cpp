#include "launcher/commands/watch/watch_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/runs/run_devices.h"
#include "launcher/runs/run_results.h"
#include "lib/core/printable.h"
#include "lib/observe/plot.h"
#include "lib/observe/progress_text.h"
#include "lib/observe/run_times.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<observe::PlotPoint>;

constexpr int kLeastChart = 3;  // rows
constexpr int kMostChart = 24;  // rows
constexpr int kLabel = 12;      // columns of a row's name
constexpr double kSmoothing = 0.9;

// A curve below `heading`, its name and newest value; one line if there is no point.
PanelLines chart(const std::string& heading, const Points& points, int width, int height,
                 const observe::AxisText& y_text = nullptr) {
  PanelLines lines =
      observe::draw_chart(points, width, height, observe::Scale::kLinear, y_text, "step");
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

PanelLines loss_chart(const RunCurves& curves, const WatchView& view, int width, int height) {
  Points points = view.smooth ? smoothed(curves.loss) : curves.loss;
  if (!view.log_loss) return chart(loss_heading(curves, view), points, width, height);
  std::erase_if(points, [](const observe::PlotPoint& point) { return !(point.y > 0); });
  for (observe::PlotPoint& point : points) point.y = std::log10(point.y);
  return chart(loss_heading(curves, view), points, width, height,
               [](double value) { return fmt::format("{:.4g}", std::pow(10, value)); });
}

PanelLines validation_chart(const RunCurves& curves, int width, int height) {
  const auto text_of = [&curves](double value) {
    return value_text("val_" + curves.measure, value);
  };
  const std::string heading =
      fmt::format("val {}  {}", measure_label(curves.measure), text_of(curves.validation.back().y));
  return chart(heading, curves.validation, width, height, text_of);
}

std::string row(const std::string& name, const std::string& text) {
  return fmt::format("{:<{}} {}", name, kLabel, text);
}

std::string sparkline_row(const char* name, const Points& points, const std::string& value,
                          int width) {
  std::vector<double> values;
  for (const observe::PlotPoint& point : points) values.push_back(point.y);
  const int room = std::clamp(width - kLabel - observe::text_columns(value) - 3, 1, 40);
  return row(name, value + "  " + observe::sparkline(values, room));
}

// The name of a row of the ledger as the other screens have it.
std::string time_label(const std::string& name) {
  for (std::size_t i = 0; i < observe::kRunRows; ++i) {
    if (observe::row_name(i) == name) return std::string(observe::row_label(i));
  }
  return core::printable(name);
}

std::string rank_text(const Json& rank) {
  constexpr double kLateS = 5;
  std::string text = fmt::format("step {}  {}  {}", rank.value("step", std::int64_t{0}),
                                 rank.value("phase", ""), rank.value("host", ""));
  if (const double silent_s = rank.value("silent_s", 0.0); silent_s >= kLateS) {
    text += "  no heartbeat for " + observe::format_duration(silent_s);
  }
  return core::printable(text);
}

}  // namespace

PanelLines beside(const PanelLines& left, const PanelLines& right, int width) {
  PanelLines lines;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    lines.push_back(observe::fit_columns(i < left.size() ? left[i] : "", width) + "  " +
                    (i < right.size() ? right[i] : ""));
  }
  return lines;
}

PanelLines curve_panel(const RunCurves& curves, ScreenSize size, const WatchView& view) {
  constexpr int kHeadingAndAxis = 2;
  const auto rows_of = [](int lines) {
    return std::clamp(lines - kHeadingAndAxis, kLeastChart, kMostChart);
  };
  if (curves.validation.empty()) return loss_chart(curves, view, size.width, rows_of(size.height));
  if (size.width >= kSideBySide) {
    const int width = (size.width - 2) / 2, rows = rows_of(size.height);
    return beside(loss_chart(curves, view, width, rows), validation_chart(curves, width, rows),
                  width);
  }
  const int rows = rows_of(size.height / 2);
  PanelLines lines = loss_chart(curves, view, size.width, rows);
  for (std::string& line : validation_chart(curves, size.width, rows)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

PanelLines rate_panel(const RunCurves& curves, int width) {
  if (curves.lr.empty()) return {};
  PanelLines lines{
      sparkline_row("lr", curves.lr, fmt::format("{:.3g}", curves.lr.back().y), width),
      sparkline_row("throughput", curves.throughput,
                    fmt::format("{} {}/s", value_text("samples_per_s", curves.throughput.back().y),
                                curves.counts_tokens ? "tokens" : "samples"),
                    width)};
  if (curves.peak_bytes) {
    lines.push_back(row("peak memory", value_text("memory_bytes", *curves.peak_bytes) + " a rank"));
  }
  return lines;
}

PanelLines time_panel(const RunCurves& curves, int width, int most) {
  constexpr double kLeastShare = 0.01;
  constexpr int kTimeLabel = 22, kPercent = 5, kMostBar = 30;
  std::vector<std::pair<std::string, double>> rows = curves.rows;
  double sum = 0;
  for (const auto& [name, seconds] : rows) sum += seconds;
  std::erase_if(rows, [sum](const auto& one) { return !(one.second >= kLeastShare * sum); });
  if (!(sum > 0)) return {};
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (static_cast<int>(rows.size()) > most) rows.resize(static_cast<std::size_t>(most));
  const int bar = std::clamp(width - kTimeLabel - kPercent - 2, 0, kMostBar);
  PanelLines lines;
  for (const auto& [name, seconds] : rows) {
    const double share = seconds / sum;
    std::string blocks;
    for (int i = 0; i < static_cast<int>(std::lround(share * bar)); ++i) blocks += "█";
    lines.push_back(
        fmt::format("{:<{}}{:>3.0f} %  {}", time_label(name), kTimeLabel, 100 * share, blocks));
  }
  return lines;
}

PanelLines rank_panel(const Json& status, int most) {
  if (status["state"] != "running" && status["state"] != "dead") return {};
  const Json& ranks = status["ranks"];
  PanelLines lines;
  for (const Json& rank : ranks) {
    if (static_cast<int>(lines.size()) == most) {
      lines.push_back(row("", fmt::format("and {} more", static_cast<int>(ranks.size()) - most)));
      break;
    }
    lines.push_back(row(fmt::format("rank {}", rank.value("rank", 0)), rank_text(rank)));
  }
  return lines;
}

PanelLines device_panel(const Json& status, int most) {
  const std::vector<DeviceRow> devices = device_rows(status.value("devices", Json::array()));
  PanelLines lines;
  for (const DeviceRow& device : devices) {
    if (static_cast<int>(lines.size()) == most) {
      lines.push_back(row("", fmt::format("and {} more", static_cast<int>(devices.size()) - most)));
      break;
    }
    lines.push_back(row(device.name, core::printable(device.text)));
  }
  return lines;
}

}  // namespace scaletrain::launcher
