// Outline of a run before it starts: its steps, validations, checkpoints and learning rates.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/checkpoint.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

struct RunOutline {
  std::string name{}, output{};
  int ranks = 1, nodes = 1;
  std::int64_t global_batch = 0;
  std::int64_t steps = 0;                              // 0: unknown
  std::int64_t steps_per_epoch = 0;                    // 0: unknown
  std::optional<std::int64_t> validations{}, saves{};  // nullopt: unknown
  std::int64_t kept = 0;                               // checkpoints on the disk at the same time
  double checkpoint_bytes = 0;                         // of one checkpoint; 0: unknown
  double free_bytes = 0;                               // of the output folder's file system
  nlohmann::ordered_json layout{};  // answer of the worker (app/worker/layout_command.h), or null
  std::vector<std::string> notes{};
};

// Fills in everything that follows from the recipe and the `samples` of an epoch (0: unknown).
RunOutline outline_run(const recipe::Recipe& recipe, int ranks, int nodes, std::int64_t samples);

// Returns how often an interval is due in `steps` steps, the last step included; nullopt if it is
// unknown, as for minutes.
std::optional<std::int64_t> times_due(const recipe::Duration& every, std::int64_t steps,
                                      std::int64_t steps_per_epoch);

// Throws core::StorageError if the kept checkpoints are larger than the free space.
void check_space(const RunOutline& outline);

}  // namespace scaletrain::launcher
