// How a run is, read from its folder: no daemon, and the run is not contacted.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace scaletrain::launcher {

// An object with "name", "state", "why" (a failure's verdict, how a finished run ended), "attempt",
// "restart", "step", "total_steps", "epoch", "loss", "losses" (recent ones, for a sparkline),
// "samples_per_s", "left_s", "checkpoint", "checkpoint_age_s", "hosts" and "ranks"; null where
// something is not known. "state" is
//   running    its launcher lives
//   dead       its launcher has gone without a word: the machine or the launcher was killed
//   finished, failed, stopped
// Throws core::UsageError where the folder holds no run.
nlohmann::ordered_json run_status(const std::filesystem::path& run);

// Returns the status as readable text: several lines, each with its newline.
std::string status_text(const nlohmann::ordered_json& status);

}  // namespace scaletrain::launcher
