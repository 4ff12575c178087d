// Kubernetes objects that run a recipe: an Indexed Job with its headless service, a JobSet, or a
// PyTorchJob of Kubeflow's training operator.
//
// A ConfigMap holds the recipe's files. A pod failure policy maps exit codes: 2, 65, 71 and 76 end
// the job; 74, 75 and signals are retried; evictions by the cluster do not count as failures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

enum class ManifestKind { kIndexedJob, kJobSet, kPyTorchJob };

struct ManifestOptions {
  ManifestKind kind = ManifestKind::kIndexedJob;
  std::string name{};        // name of every object
  std::string name_space{};  // "": kubectl's default
  std::string image{};
  int nodes = 1;
  int gpus = 0;                  // GPUs per node
  std::string cpus{}, memory{};  // per node, as Kubernetes quantities; "": not requested
  int max_restarts = 10;
  int grace_s = 120;                                                // between SIGTERM and SIGKILL
  std::vector<std::pair<std::string, std::string>> recipe_files{};  // name, text; first the recipe
  std::vector<std::string> launch_arguments{};                      // flags for scaletrain launch
  std::vector<std::pair<std::string, std::string>> volumes{};       // claim name, mount path
  std::vector<std::pair<std::string, std::string>> variables{};     // name, value
  std::vector<std::string> secrets{};  // secrets whose keys become environment variables
};

// Returns the objects in the order in which they must be created.
std::vector<nlohmann::ordered_json> manifest(const ManifestOptions& options);

}  // namespace scaletrain::launcher
