#include "launcher/commands/kubernetes/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRecipeFolder = "/etc/scaletrain";
constexpr const char* kNodeJob = "node";          // a JobSet's only replicated job
constexpr const char* kOperatorName = "pytorch";  // name that the operator requires
constexpr int kRetryStatus = 175;                 // the operator retries from 128 on

Json metadata(const ManifestOptions& options) {
  Json result{{"name", options.name}};
  if (!options.name_space.empty()) result["namespace"] = options.name_space;
  result["labels"] = {{"app.kubernetes.io/name", options.name},
                      {"app.kubernetes.io/managed-by", "scaletrain"}};
  return result;
}

Json recipe_map(const ManifestOptions& options) {
  Json files = Json::object();
  for (const auto& [name, text] : options.recipe_files) files[name] = text;
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", metadata(options)},
          {"data", files}};
}

// Rendezvous host: the name of pod 0, by the manifest's kind; "": set by other means.
std::string first_pod(const ManifestOptions& options) {
  if (options.nodes == 1 || options.kind == ManifestKind::kPyTorchJob) return "";
  if (options.kind == ManifestKind::kIndexedJob) return fmt::format("{0}-0.{0}", options.name);
  return fmt::format("{0}-{1}-0-0.{0}", options.name, kNodeJob);
}

std::vector<std::string> launch_words(const ManifestOptions& options) {
  std::vector<std::string> result{"launch", "--resume", "auto"};
  const auto add = [&](const std::vector<std::string>& words) {
    result.insert(result.end(), words.begin(), words.end());
  };
  const std::string first = first_pod(options);
  if (!first.empty()) add({"--nnodes", std::to_string(options.nodes), "--master-addr", first});
  // The operator's default would be "auto": one for each CPU if there is no GPU.
  add({"--nproc", std::to_string(std::max(1, options.gpus))});
  // Workers that do not save in time are killed while the launcher can still report why.
  add({"--grace", fmt::format("{}s", options.grace_s * 3 / 4)});
  add(options.launch_arguments);
  add({fmt::format("{}/{}", kRecipeFolder, options.recipe_files.front().first)});
  return result;
}

Json mounts_and_volumes(const ManifestOptions& options) {
  Json mounts = {{{"name", "recipe"}, {"mountPath", kRecipeFolder}},
                 {{"name", "shm"}, {"mountPath", "/dev/shm"}}};
  Json volumes = {{{"name", "recipe"}, {"configMap", {{"name", options.name}}}},
                  {{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}};
  int number = 0;
  for (const auto& [claim, path] : options.volumes) {
    const std::string name = fmt::format("volume-{}", number++);
    mounts.push_back({{"name", name}, {"mountPath", path}});
    volumes.push_back({{"name", name}, {"persistentVolumeClaim", {{"claimName", claim}}}});
  }
  return {{"mounts", mounts}, {"volumes", volumes}};
}

Json resources(const ManifestOptions& options) {
  Json limits = Json::object();
  if (!options.cpus.empty()) limits["cpu"] = options.cpus;
  if (!options.memory.empty()) limits["memory"] = options.memory;
  if (options.gpus > 0) limits["nvidia.com/gpu"] = std::to_string(options.gpus);
  return limits;
}

Json variables(const ManifestOptions& options) {
  Json result = Json::array();
  if (options.kind == ManifestKind::kPyTorchJob) {
    result.push_back(
        {{"name", "SCALETRAIN_RETRY_STATUS"}, {"value", std::to_string(kRetryStatus)}});
  }
  for (const auto& [name, value] : options.variables) {
    result.push_back({{"name", name}, {"value", value}});
  }
  return result;
}

Json container(const ManifestOptions& options, const Json& mounts) {
  const bool for_operator = options.kind == ManifestKind::kPyTorchJob;
  Json result{{"name", for_operator ? kOperatorName : "scaletrain"},
              {"image", options.image},
              {"command", {"scaletrain"}},
              {"args", launch_words(options)}};
  const Json env = variables(options);
  if (!env.empty()) result["env"] = env;
  for (const std::string& secret : options.secrets) {
    result["envFrom"].push_back({{"secretRef", {{"name", secret}}}});
  }
  const Json limits = resources(options);
  if (!limits.empty()) result["resources"] = {{"limits", limits}};
  result["volumeMounts"] = mounts;
  return result;
}

Json pod_spec(const ManifestOptions& options) {
  const Json storage = mounts_and_volumes(options);
  Json result = Json::object();
  if (options.kind != ManifestKind::kPyTorchJob) result["restartPolicy"] = "Never";
  if (options.kind == ManifestKind::kIndexedJob) result["subdomain"] = options.name;
  result["terminationGracePeriodSeconds"] = options.grace_s;
  result["containers"] = Json::array({container(options, storage["mounts"])});
  result["volumes"] = storage["volumes"];
  return result;
}

Json exit_code_rule(const char* action, const Json& codes) {
  return {
      {"action", action},
      {"onExitCodes", {{"containerName", "scaletrain"}, {"operator", "In"}, {"values", codes}}}};
}

// docs/reference/exit-codes.md, for the controller of Jobs.
Json failure_policy() {
  const Json disrupted{
      {"action", "Ignore"},
      {"onPodConditions", Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  return {{"rules", Json::array({exit_code_rule("FailJob", {2, 65, 71, 76}), disrupted,
                                 exit_code_rule("Count", {74, 75})})}};
}

Json job_spec(const ManifestOptions& options, int backoff_limit) {
  return {{"completionMode", "Indexed"},          {"completions", options.nodes},
          {"parallelism", options.nodes},         {"backoffLimit", backoff_limit},
          {"podFailurePolicy", failure_policy()}, {"template", {{"spec", pod_spec(options)}}}};
}

Json service(const ManifestOptions& options) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata(options)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{"job-name", options.name}}}}}};
}

Json indexed_job(const ManifestOptions& options) {
  // A failure on one node ends the pods of all nodes, each of which counts as a failure.
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata(options)},
          {"spec", job_spec(options, options.max_restarts * options.nodes)}};
}

Json job_set(const ManifestOptions& options) {
  // The JobSet restarts all nodes together; each of its Jobs gives up at the first failure.
  const Json lasting = Json::array({{{"name", "lasting"},
                                     {"action", "FailJobSet"},
                                     {"onJobFailureReasons", {"PodFailurePolicy"}}}});
  return {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
          {"kind", "JobSet"},
          {"metadata", metadata(options)},
          {"spec",
           {{"network", {{"enableDNSHostnames", true}, {"publishNotReadyAddresses", true}}},
            {"failurePolicy", {{"maxRestarts", options.max_restarts}, {"rules", lasting}}},
            {"replicatedJobs", Json::array({{{"name", kNodeJob},
                                             {"replicas", 1},
                                             {"template", {{"spec", job_spec(options, 0)}}}}})}}}};
}

Json replicas(const ManifestOptions& options, int count) {
  return {{"replicas", count},
          {"restartPolicy", "ExitCode"},
          {"template", {{"spec", pod_spec(options)}}}};
}

Json pytorch_job(const ManifestOptions& options) {
  Json specs{{"Master", replicas(options, 1)}};
  if (options.nodes > 1) specs["Worker"] = replicas(options, options.nodes - 1);
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "PyTorchJob"},
          {"metadata", metadata(options)},
          {"spec",
           {{"runPolicy", {{"cleanPodPolicy", "None"}, {"backoffLimit", options.max_restarts}}},
            {"pytorchReplicaSpecs", specs}}}};
}

}  // namespace

std::vector<nlohmann::ordered_json> manifest(const ManifestOptions& options) {
  std::vector<Json> result{recipe_map(options)};
  switch (options.kind) {
    case ManifestKind::kIndexedJob:
      if (options.nodes > 1) result.push_back(service(options));
      result.push_back(indexed_job(options));
      break;
    case ManifestKind::kJobSet:
      result.push_back(job_set(options));
      break;
    case ManifestKind::kPyTorchJob:
      result.push_back(pytorch_job(options));
      break;
  }
  return result;
}

}  // namespace scaletrain::launcher
