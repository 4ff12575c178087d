// The folder of a run as one value: recipe, metrics of all attempts, environment, results, failures
// and journal. `report`, `compare` and `runs` read runs through it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/runs/run_metrics.h"
#include "launcher/runs/run_state.h"

namespace scaletrain::launcher {

struct RunRecord : RunMetrics {
  std::string shown;             // the path as a person typed it
  std::filesystem::path folder;  // a local folder, also of a run in an object store
  std::string name;              // name in the recipe
  RunState state;
  RunJson recipe;
  RunJson environment;  // null: the file is missing or damaged, as for `failure`
  RunJson failure;
  std::map<std::string, RunJson> cards;  // data cards by set: "train", "val", "test"
  std::vector<RunJson> journal;          // lines of journal.jsonl; node_joined, node_lost
};

// True if the folder holds a run: a recipe beside metrics, logs or checkpoints.
bool is_run(const std::filesystem::path& folder);

// Reads the files of a run. Throws core::UsageError if the folder holds no run.
RunRecord read_run(const std::filesystem::path& folder, const std::string& shown);

// Parses the complete `text` as a finite number.
std::optional<double> number_in_text(std::string_view text);

}  // namespace scaletrain::launcher
