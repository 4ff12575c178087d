// The objects for Kubernetes that run a recipe: an Indexed Job with its headless service, a JobSet,
// or a PyTorchJob of Kubeflow's training operator.
//
// The recipe's files are a ConfigMap. A pod failure policy maps our exit codes: 2, 65, 71
// and 76 end the job, 74, 75 and signals are tried again, and a pod that the cluster itself took
// away does not count.
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
  std::string name_space{};  // "": kubectl's
  std::string image{};
  int nodes = 1;
  int gpus = 0;                  // GPUs per node
  std::string cpus{}, memory{};  // per node, as Kubernetes quantities; "": not requested
  int max_restarts = 10;
  int grace_s = 120;                                                // between SIGTERM and SIGKILL
  std::vector<std::pair<std::string, std::string>> recipe_files{};  // name, text; first the recipe
  std::vector<std::string> launch_arguments{};                      // flags for scaletrain launch
  std::vector<std::pair<std::string, std::string>> volumes{};       // claim, where it is mounted
  std::vector<std::pair<std::string, std::string>> variables{};     // name, value
  std::vector<std::string> secrets{};                               // whose keys become variables
};

// In the order in which they are to be made.
std::vector<nlohmann::ordered_json> manifest(const ManifestOptions& options);

}  // namespace scaletrain::launcher
