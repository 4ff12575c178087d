// RUN/status/NODE.json: the last known state of a launcher's workers, for `scaletrain status`.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/workers/hang.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

class NodeStatus {
 public:
  static constexpr std::chrono::seconds kEvery{2};

  // Status file of node `node` in the run's folder, for one attempt.
  NodeStatus(const std::filesystem::path& run, int node, int attempt, int restart);

  // Replaces the file, at most every kEvery. Never throws: a full disk must not end the training.
  void write(const std::vector<RankView>& views);

 private:
  std::filesystem::path file_;
  int node_, attempt_, restart_;
  core::SteadyTime next_;
};

// Returns all readable files, by node.
std::vector<nlohmann::json> read_node_statuses(const std::filesystem::path& run);

}  // namespace scaletrain::launcher
