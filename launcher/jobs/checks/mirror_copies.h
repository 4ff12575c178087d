// Remote copies of a run's checkpoints (/checkpoint/mirror), accessed through scaletrain-data: the
// launcher does not link the code for object stores.
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

// Returns the steps of the copies, newest first. Throws core::Error with scaletrain-data's status.
std::vector<std::int64_t> steps_in_mirror(const recipe::Recipe& recipe);

// Copies the newest complete copy after step `beyond` into the run's folder; nullopt if there is
// none. `patience_s`: time limit for a store that does not answer, if /storage/give_up_after_s is
// longer. Throws the errors of steps_in_mirror(), and core::StoppedError for a stop signal.
std::optional<std::filesystem::path> fetch_from_mirror(const recipe::Recipe& recipe,
                                                       std::int64_t beyond,
                                                       std::optional<double> patience_s);

// Returns the text of the recipe in the newest copy at `place`. Throws core::CheckpointError if
// there is no copy, and the errors of steps_in_mirror().
std::string recipe_in_mirror(const std::string& place);

}  // namespace scaletrain::launcher
