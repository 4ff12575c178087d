// The screen of `scaletrain watch` as text, from a run's status and curves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/commands/watch/metrics_follower.h"

namespace scaletrain::launcher {

struct ScreenSize {
  int width = 80, height = 24;
};

// How curves are drawn; a person changes it by keys.
struct WatchView {
  bool has_keys = false;  // the first line names the keys
  bool smooth = false;    // an exponential moving average of the loss
  bool log_loss = false;  // logarithmic axis of the loss
};

// Returns at most `height` lines of at most `width` columns, without newlines: state, the curves of
// loss and validation (side by side from 80 columns on, else one above the other), learning rate,
// throughput, where the run's time goes, ranks, devices, and as many of `last_lines` as there is room for.
// `status` is what run_status() returns.
std::vector<std::string> watch_screen(const nlohmann::ordered_json& status, const RunCurves& curves,
                                      const std::vector<std::string>& last_lines, ScreenSize size,
                                      const WatchView& view = {});

}  // namespace scaletrain::launcher
