// The panels of `scaletrain watch` as lines of text: curves, rates, time, ranks and devices.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/commands/watch/metrics_follower.h"

namespace scaletrain::launcher {

using PanelLines = std::vector<std::string>;

struct ScreenSize {
  int width = 80, height = 24;
};

enum class Panel { kCurves, kRates, kTime, kRanks, kDevices };

// How a run is shown; a person changes it by keys.
struct WatchView {
  bool has_keys = false;         // the screen names the keys
  bool smooth = false;           // an exponential moving average of the loss
  bool log_loss = false;         // logarithmic axis of the loss
  std::array<bool, 5> hidden{};  // by panel

  bool shows(Panel panel) const { return !hidden[static_cast<std::size_t>(panel)]; }
};

// From this width on, panels stand side by side.
inline constexpr int kSideBySide = 80;

// Joins two panels line by line; the left one gets `width` columns.
PanelLines beside(const PanelLines& left, const PanelLines& right, int width);

// The curves of loss and validation, side by side where there is room. A run without validation has
// the curve of the loss over the full width.
PanelLines curve_panel(const RunCurves& curves, ScreenSize size, const WatchView& view);

// Learning rate and throughput with their sparklines, and the peak memory of a rank.
PanelLines rate_panel(const RunCurves& curves, int width);

// The largest rows of the time ledger as bars, at most `most` of them.
PanelLines time_panel(const RunCurves& curves, int width, int most);

// A line for each rank of a run that has not ended, at most `most` of them: step, phase, host, and
// the age of its last heartbeat if that is late. `status` is what run_status() returns.
PanelLines rank_panel(const nlohmann::ordered_json& status, int most);

// The newest sample of each node and GPU, as in `status`, at most `most` of them.
PanelLines device_panel(const nlohmann::ordered_json& status, int most);

}  // namespace scaletrain::launcher
