// RUN/status/NODE.json: what a launcher last saw of its workers, for `scaletrain status`.
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

  // Replaces the file, at most every kEvery; never throws: a disk that is full ends no training.
  void write(const std::vector<RankView>& views);

 private:
  std::filesystem::path file_;
  int node_, attempt_, restart_;
  core::SteadyTime next_;
};

// The files of all nodes that can be read, by node.
std::vector<nlohmann::json> read_node_statuses(const std::filesystem::path& run);

}  // namespace scaletrain::launcher
