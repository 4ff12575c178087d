#include "launcher/commands/kubernetes/manifest.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

ManifestOptions four_nodes(ManifestKind kind) {
  return {.kind = kind,
          .name = "run",
          .image = "registry/image:1",
          .nodes = 4,
          .gpus = 8,
          .max_restarts = 3,
          .grace_s = 120,
          .recipe_files = {{"digits.json", "{}\n"}, {"base.json", "{}\n"}}};
}

std::string kinds(const std::vector<Json>& objects) {
  std::string result;
  for (const Json& object : objects) result += object.at("kind").get<std::string>() + " ";
  return result;
}

std::string words(const Json& container) {
  std::string result;
  for (const Json& word : container.at("args")) result += word.get<std::string>() + " ";
  return result;
}

TEST_CASE("an Indexed Job has a headless service by which its pods find the first") {
  const std::vector<Json> objects = manifest(four_nodes(ManifestKind::kIndexedJob));
  CHECK(kinds(objects) == "ConfigMap Service Job ");
  CHECK(objects[0].at("data").dump() == R"({"digits.json":"{}\n","base.json":"{}\n"})");
  CHECK(objects[1].at("spec").at("clusterIP") == "None");
  const Json& spec = objects[2].at("spec");
  CHECK(spec.at("completionMode") == "Indexed");
  CHECK(spec.at("completions") == 4);
  CHECK(spec.at("backoffLimit") == 12);  // 3 restarts of 4 pods
  const Json& pod = spec.at("template").at("spec");
  CHECK(pod.at("subdomain") == "run");
  CHECK(words(pod.at("containers")[0]) ==
        "launch --resume auto --nnodes 4 --master-addr run-0.run --nproc 8 --grace 90s "
        "/etc/scaletrain/digits.json ");
}

TEST_CASE("exit codes that a restart does not help end the job") {
  const Json policy =
      manifest(four_nodes(ManifestKind::kIndexedJob))[2].at("spec").at("podFailurePolicy");
  const Json& rules = policy.at("rules");
  CHECK(rules[0].at("action") == "FailJob");
  CHECK(rules[0].at("onExitCodes").at("values") == Json({2, 65, 71, 76}));
  CHECK(rules[1].at("action") == "Ignore");
  CHECK(rules[2].at("action") == "Count");
  CHECK(rules[2].at("onExitCodes").at("values") == Json({74, 75}));
}

TEST_CASE("a JobSet starts all nodes again together") {
  const std::vector<Json> objects = manifest(four_nodes(ManifestKind::kJobSet));
  CHECK(kinds(objects) == "ConfigMap JobSet ");
  const Json& spec = objects[1].at("spec");
  CHECK(spec.at("failurePolicy").at("maxRestarts") == 3);
  const Json& job = spec.at("replicatedJobs")[0].at("template").at("spec");
  CHECK(job.at("backoffLimit") == 0);
  CHECK(words(job.at("template").at("spec").at("containers")[0]).find("run-node-0-0.run") !=
        std::string::npos);
}

TEST_CASE("a PyTorchJob gets its nodes from its operator and restarts by exit code") {
  const std::vector<Json> objects = manifest(four_nodes(ManifestKind::kPyTorchJob));
  CHECK(kinds(objects) == "ConfigMap PyTorchJob ");
  const Json& replicas = objects[1].at("spec").at("pytorchReplicaSpecs");
  CHECK(replicas.at("Master").at("replicas") == 1);
  CHECK(replicas.at("Worker").at("replicas") == 3);
  CHECK(replicas.at("Worker").at("restartPolicy") == "ExitCode");
  const Json& container = replicas.at("Master").at("template").at("spec").at("containers")[0];
  CHECK(container.at("name") == "pytorch");
  CHECK(container.at("env")[0] == Json({{"name", "SCALETRAIN_RETRY_STATUS"}, {"value", "175"}}));
  CHECK(words(container) ==
        "launch --resume auto --nproc 8 --grace 90s /etc/scaletrain/digits.json ");
}

TEST_CASE("one node needs no other") {
  ManifestOptions options = four_nodes(ManifestKind::kIndexedJob);
  options.nodes = 1;
  CHECK(kinds(manifest(options)) == "ConfigMap Job ");
  options.kind = ManifestKind::kPyTorchJob;
  CHECK_FALSE(manifest(options)[1].at("spec").at("pytorchReplicaSpecs").contains("Worker"));
}

TEST_CASE("volumes, variables, secrets and limits reach the container") {
  ManifestOptions options = four_nodes(ManifestKind::kIndexedJob);
  options.cpus = "16";
  options.memory = "64Gi";
  options.volumes = {{"claim", "/data"}};
  options.variables = {{"A", "b"}};
  options.secrets = {"keys"};
  const Json pod = manifest(options)[2].at("spec").at("template").at("spec");
  const Json& container = pod.at("containers")[0];
  CHECK(container.at("volumeMounts")[2] == Json({{"name", "volume-0"}, {"mountPath", "/data"}}));
  CHECK(pod.at("volumes")[2].at("persistentVolumeClaim").at("claimName") == "claim");
  CHECK(container.at("env")[0].at("name") == "A");
  CHECK(container.at("envFrom")[0].at("secretRef").at("name") == "keys");
  CHECK(container.at("resources").at("limits") ==
        Json({{"cpu", "16"}, {"memory", "64Gi"}, {"nvidia.com/gpu", "8"}}));
}

}  // namespace
}  // namespace scaletrain::launcher
