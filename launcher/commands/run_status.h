// Status of a run, read from its folder only: there is no daemon, and the run is not contacted.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace scaletrain::launcher {

// An object with "name", "state", "why" (cause of a failure, or result of a finished run),
// "attempt", "restart", "step", "total_steps", "epoch", "loss", "losses" (recent ones, for a
// sparkline), "samples_per_s", "left_s", "checkpoint", "checkpoint_age_s", "hosts" and "ranks";
// unknown values are null. "state" is
//   running    its launcher lives
//   dead       its launcher vanished: it was killed, or the machine went down
//   finished, failed, stopped
// Throws core::UsageError if the folder has no run.
nlohmann::ordered_json run_status(const std::filesystem::path& run);

// The cause of a failure, or what a finished run's test gave, without the step and the epoch that
// the status has beside it; "" if there is neither.
std::string reason_text(const nlohmann::ordered_json& status);

// Returns the status as readable text: several lines, each with its newline.
std::string status_text(const nlohmann::ordered_json& status);

}  // namespace scaletrain::launcher
