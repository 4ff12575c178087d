// The screen of `scaletrain watch` as text, from a run's status and curves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/commands/watch/watch_panels.h"

namespace scaletrain::launcher {

// Returns at most `height` lines of at most `width` columns, without newlines: state, the panels
// that `view` shows, and as many of `last_lines` as there is room for. The curves get the rows that
// are left. `status` is what run_status() returns.
std::vector<std::string> watch_screen(const nlohmann::ordered_json& status, const RunCurves& curves,
                                      const std::vector<std::string>& last_lines, ScreenSize size,
                                      const WatchView& view = {});

}  // namespace scaletrain::launcher
