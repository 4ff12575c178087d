#include "launcher/commands/watch/watch_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "launcher/commands/run_status.h"
#include "lib/core/printable.h"
#include "lib/observe/plot.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKeys = "q quit  s smooth  l log scale  1-5 panels";

// The fields of `parts`, three blanks apart, on as many lines as they need.
PanelLines wrapped(const std::vector<std::string>& parts, int width) {
  PanelLines lines{""};
  for (const std::string& part : parts) {
    const int columns = observe::text_columns(lines.back()) + 3 + observe::text_columns(part);
    if (!lines.back().empty() && columns > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += "   ";
    lines.back() += part;
  }
  return lines;
}

// What the run does, and the keys: at the right edge, or below where that has no room.
PanelLines title(const Json& status, const RunCurves& curves, ScreenSize size, bool has_keys) {
  constexpr int kHighForKeys = 20;
  const Json& name = status["name"];
  std::vector<std::string> parts{
      core::printable(name.is_string() ? name.get<std::string>() : "a run"),
      status["state"].get<std::string>()};
  if (curves.seconds > 0) parts.back() += " " + observe::format_duration(curves.seconds);
  if (status["step"].is_number()) {
    const bool has_total = status["total_steps"].is_number();
    parts.push_back("step " + status["step"].dump() +
                    (has_total ? "/" + status["total_steps"].dump() : ""));
  }
  if (status["left_s"].is_number()) {
    parts.push_back("left " + observe::format_duration(status["left_s"].get<double>()));
  }
  if (status["restart"].is_number()) parts.push_back("restarts " + status["restart"].dump());
  PanelLines lines = wrapped(parts, size.width);
  if (!has_keys) return lines;
  const int gap = size.width - observe::text_columns(lines.back()) - static_cast<int>(kKeys.size());
  if (gap >= 3) {
    lines.back() += std::string(static_cast<std::size_t>(gap), ' ') + std::string(kKeys);
  } else if (size.height >= kHighForKeys) {
    lines.emplace_back(kKeys);
  }
  return lines;
}

void append(PanelLines& lines, PanelLines more) {
  for (std::string& line : more) lines.push_back(std::move(line));
}

// Rates and ranks on the left, the time on the right; one above the other on a narrow screen.
PanelLines lower_panels(const Json& status, const RunCurves& curves, ScreenSize size,
                        const WatchView& view) {
  const bool is_wide = size.width >= kSideBySide && view.shows(Panel::kTime);
  const int width = is_wide ? (size.width - 2) / 2 : size.width;
  const int most = std::max(size.height / 6, 2);  // rows of a panel that may have many
  PanelLines left, right;
  if (view.shows(Panel::kRates)) left = rate_panel(curves, width);
  if (view.shows(Panel::kRanks)) append(left, rank_panel(status, most));
  if (view.shows(Panel::kTime)) {
    const int as_left = is_wide ? static_cast<int>(left.size()) : 0;
    right = time_panel(curves, width, std::max(most, as_left));
  }
  if (is_wide && !left.empty() && !right.empty()) return beside(left, right, width);
  append(left, std::move(right));
  return left;
}

PanelLines log_lines(const std::vector<std::string>& last_lines) {
  PanelLines lines;
  for (const std::string& line : last_lines) lines.push_back(core::printable(line));
  return lines;
}

void fit(PanelLines& lines, ScreenSize size) {
  const auto most = static_cast<std::size_t>(std::max(size.height, 1));
  if (lines.size() > most) lines.resize(most);
  for (std::string& line : lines) {
    if (observe::text_columns(line) > size.width) line = observe::fit_columns(line, size.width);
    line.erase(line.find_last_not_of(' ') + 1);
  }
}

}  // namespace

std::vector<std::string> watch_screen(const Json& status, const RunCurves& curves,
                                      const std::vector<std::string>& last_lines, ScreenSize size,
                                      const WatchView& view) {
  PanelLines lines = title(status, curves, size, view.has_keys);
  const std::string reason = core::printable(reason_text(status));
  if (!reason.empty()) lines.push_back(reason);
  PanelLines lower = lower_panels(status, curves, size, view);
  if (view.shows(Panel::kDevices))
    append(lower, device_panel(status, std::max(size.height / 6, 2)));
  const PanelLines log = log_lines(last_lines);
  const auto room = [&] { return size.height - static_cast<int>(lines.size() + lower.size()); };
  if (view.shows(Panel::kCurves)) {
    const int kept = static_cast<int>(log.size());
    append(lines, curve_panel(curves, {.width = size.width, .height = room() - kept}, view));
  }
  const auto skipped = static_cast<std::size_t>(
      std::clamp(static_cast<int>(log.size()) - room(), 0, static_cast<int>(log.size())));
  append(lines, lower);
  lines.insert(lines.end(), log.begin() + static_cast<std::ptrdiff_t>(skipped), log.end());
  fit(lines, size);
  return lines;
}

}  // namespace scaletrain::launcher
