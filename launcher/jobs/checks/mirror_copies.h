// Copies of a run's checkpoints in its second place (/checkpoint/mirror), by way of
// scaletrain-data: what speaks to object stores is not linked here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Their steps, newest first. Throws core::Error of scaletrain-data's status.
std::vector<std::int64_t> steps_in_mirror(const recipe::Recipe& recipe);

// Copies the newest that is newer than `beyond` and whole into the run's folder; nullopt: there is
// none. `patience_s` is for a place that does not answer, in place of /storage/give_up_after_s
// where that is longer. Throws as steps_in_mirror, and core::StoppedError for a signal that asks to
// stop meanwhile.
std::optional<std::filesystem::path> fetch_from_mirror(const recipe::Recipe& recipe,
                                                       std::int64_t beyond,
                                                       std::optional<double> patience_s);

// The recipe that the newest copy at `place` was trained with, its text. Throws
// core::CheckpointError where there is no copy; as steps_in_mirror.
std::string recipe_in_mirror(const std::string& place);

}  // namespace scaletrain::launcher
