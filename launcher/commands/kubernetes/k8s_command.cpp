#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "launcher/commands/commands.h"
#include "launcher/commands/kubernetes/manifest.h"
#include "launcher/commands/kubernetes/yaml.h"
#include "launcher/flags/values.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/place/batch_check.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/help_text.h"

namespace scaletrain::launcher {
namespace {

constexpr std::int64_t kMostRecipeBytes = 1'000'000;  // limit of a ConfigMap less its metadata
constexpr std::size_t kMostNameBytes = 50;            // "-node-0-65535" follows in a host's name
constexpr int kMostPods = 65536;
constexpr int kMostGpus = 1024;

// The flags, as a person gave them.
struct K8sOptions {
  ManifestOptions manifest{};
  std::string recipe{}, kind = "indexed-job", grace = "2m";
  std::string nodes = "1", gpus_per_node{}, max_restarts = "10";
  std::vector<std::string> volumes{}, variables{}, set{};
};

bool is_name(const std::string& text) {
  const auto is_alphanumeric = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
  };
  return !text.empty() && text.size() <= kMostNameBytes && text[0] >= 'a' && text[0] <= 'z' &&
         is_alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [&](char byte) {
           return is_alphanumeric(byte) || byte == '-';
         });
}

// The recipe's name as Kubernetes allows it: "Digits ResNet-18" is digits-resnet-18.
std::string name_of(const std::string& recipe_name) {
  std::string result;
  for (char byte : recipe_name) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte + 32);
    const bool allowed = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
    if (allowed) {
      result += byte;
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  if (result.empty()) return "run";
  if (result[0] >= '0' && result[0] <= '9') result.insert(0, "run-");
  result = result.substr(0, kMostNameBytes);
  while (result.ends_with('-')) result.pop_back();
  return result;
}

std::pair<std::string, std::string> cut_at(const char* flag, const std::string& text, char mark,
                                           const char* remedy) {
  const std::size_t at = text.find(mark);
  if (at == 0 || at == std::string::npos || at + 1 == text.size()) {
    throw core::UsageError(flag, fmt::format("\"{}\" is not allowed", core::printable(text)),
                           remedy);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

ManifestKind kind_of(const std::string& text) {
  if (text == "indexed-job") return ManifestKind::kIndexedJob;
  if (text == "jobset") return ManifestKind::kJobSet;
  if (text == "pytorchjob") return ManifestKind::kPyTorchJob;
  throw core::UsageError("--kind", fmt::format("\"{}\" is not allowed", core::printable(text)),
                         "use one of: indexed-job, jobset, pytorchjob");
}

// The recipe and those that it extends, as they are: paths in them are those of the containers.
std::vector<std::pair<std::string, std::string>> recipe_files(std::filesystem::path file) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  std::vector<std::pair<std::string, std::string>> result;
  while (true) {
    const std::string name = file.filename();
    if (name.find_first_not_of(kAllowed) != std::string::npos) {
      throw core::UsageError(core::printable(file.string()), "cannot be a key of a ConfigMap",
                             "name the file with letters, digits, '-', '_' and '.' only");
    }
    result.emplace_back(name, core::read_file(file, kMostRecipeBytes, core::ExitCode::kUsage));
    const nlohmann::json recipe = nlohmann::json::parse(result.back().second, nullptr, false, true);
    if (!recipe.is_object() || !recipe.contains("extends")) return result;
    const std::filesystem::path base = recipe["extends"].get<std::string>();
    if (base.has_parent_path()) {
      throw core::UsageError(
          core::printable(file.string()),
          "extends a file in another folder, but in the pods all recipes are in one folder",
          "put both files into the same folder");
    }
    file.replace_filename(base);
  }
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

void warn_of_lost_output(const std::string& output, const ManifestOptions& manifest) {
  if (std::any_of(manifest.volumes.begin(), manifest.volumes.end(),
                  [&](const auto& volume) { return lies_in(output, volume.second); })) {
    return;
  }
  core::warn(
      "{}: the run's folder is not on a volume: a restarted pod would train from the beginning\n"
      "  --volume CLAIM:/runs --set output=/runs/NAME",
      output);
}

ManifestOptions resolved_manifest(const K8sOptions& options) {
  ManifestOptions result = options.manifest;
  result.kind = kind_of(options.kind);
  result.nodes = parse_count("--nodes", options.nodes, 1, kMostPods);
  result.max_restarts = parse_count("--max-restarts", options.max_restarts, 0, 10'000);
  if (!options.gpus_per_node.empty()) {
    result.gpus = parse_count("--gpus-per-node", options.gpus_per_node, 1, kMostGpus);
  }
  result.grace_s = static_cast<int>(
      std::chrono::ceil<std::chrono::seconds>(parse_duration("--grace", options.grace)).count());
  for (const std::string& volume : options.volumes) {
    result.volumes.push_back(
        cut_at("--volume", volume, ':', "give CLAIM:/PATH: --volume data:/data"));
  }
  for (const std::string& variable : options.variables) {
    result.variables.push_back(
        cut_at("--env", variable, '=', "give NAME=VALUE: --env NCCL_DEBUG=INFO"));
  }
  const recipe::Recipe recipe = load_recipe_of_run(options.recipe, options.set);
  plan_batch(recipe, result.nodes * std::max(1, result.gpus));
  if (result.name.empty()) {
    result.name = name_of(recipe.name);
  } else if (!is_name(result.name)) {
    throw core::UsageError(
        "--name", fmt::format("\"{}\" is not allowed", core::printable(result.name)),
        "give up to 50 small letters, digits and dashes, a letter first: digits-resnet18");
  }
  result.recipe_files = recipe_files(options.recipe);
  for (const std::string& override : options.set) {
    result.launch_arguments.insert(result.launch_arguments.end(), {"--set", override});
  }
  warn_of_lost_output(recipe.output, result);
  return result;
}

void print(const K8sOptions& options) {
  std::string text;
  try {
    for (const nlohmann::ordered_json& object : manifest(resolved_manifest(options))) {
      text += (text.empty() ? "" : "---\n") + to_yaml(object);
    }
  } catch (const nlohmann::json::exception&) {
    throw core::UsageError("k8s", "a value is not UTF-8", "Kubernetes takes UTF-8 only");
  }
  std::fputs(text.c_str(), stdout);
}

}  // namespace

void add_k8s_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<K8sOptions>();
  ManifestOptions& manifest = options->manifest;
  CLI::App* const command =
      app.add_subcommand("k8s", "Print a Kubernetes manifest that runs a recipe");
  const core::FlagGroup group(*command, "Pods");
  command->add_option("RECIPE", options->recipe, "Recipe to run.")->required();
  command->add_option("--image", manifest.image, "Container image with scaletrain on its PATH.")
      ->required();
  command->add_option("--kind", options->kind,
                      "Kind of object: indexed-job, jobset or pytorchjob. Default: indexed-job.");
  command->add_option("--nodes", options->nodes, "Number of pods. Default: 1.");
  command->add_option("--gpus-per-node", options->gpus_per_node,
                      "Number of GPUs, and of workers, of each pod.");
  command->add_option("--cpus-per-node", manifest.cpus,
                      "Number of CPU cores of each pod, for example 16.");
  command->add_option("--mem", manifest.memory, "Memory of each pod, for example 64Gi.");
  command->add_option("--name", manifest.name, "Name of the objects. Default: the recipe's name.");
  command->add_option("--namespace", manifest.name_space, "Namespace. Default: that of kubectl.");
  command->add_option("--max-restarts", options->max_restarts,
                      "Maximum number of times that all pods start again. Default: 10.");
  command->add_option("--grace", options->grace,
                      "Time to save when a pod is stopped. Default: 2m.");
  const auto add_list = [&](const char* flag, std::vector<std::string>& values, const char* help) {
    command->add_option(flag, values, help)->allow_extra_args(false);
  };
  add_list(
      "--volume", options->volumes,
      "Persistent volume claim that is mounted for data and runs, as CLAIM:/PATH. Repeatable.");
  add_list("--env", options->variables,
           "Environment variable of the pods, NAME=VALUE. Repeatable.");
  add_list("--secret", manifest.secrets,
           "Kubernetes secret whose keys become environment variables. Repeatable.");
  add_list("--set", options->set,
           "Override a key of the recipe, for example optimizer.lr=0.01. Repeatable.");
  command->callback([options, &exit_status] {
    print(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
