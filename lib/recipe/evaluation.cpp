#include "lib/recipe/evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/recipe/catalog/task.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/weights_flag.h"

namespace scaletrain::recipe {
namespace {

constexpr std::int64_t kMostBatch = 1 << 20;

// `Request`: EvaluationRequest or PredictionRequest.
template <typename Request>
void add_common_flags(CLI::App& command, Request& asked) {
  command
      .add_option("CHECKPOINT", asked.checkpoint,
                  "Checkpoint, run folder, or its `latest` or `best`.")
      ->type_name("CHECKPOINT")
      ->required();
  add_weights_flag(command, asked.weights);
  command
      .add_option("--nproc", asked.nproc,
                  "Number of ranks on this machine; `gpu` starts one for each device.")
      ->capture_default_str();
  command
      .add_option("--batch", asked.batch,
                  "Batch size of each rank in samples; 0 takes that of the run.")
      ->check(CLI::Range(std::int64_t{0}, kMostBatch))
      ->capture_default_str();
  command
      .add_option("--device", asked.device,
                  "Device to compute on; `auto` takes a GPU where there is one.")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command.add_option("--worker", asked.worker,
                     "Path of a worker program of your own, with its models.");
}

void add_common_overrides(std::vector<std::string>& overrides, std::int64_t batch,
                          const std::string& device) {
  if (device != "auto") overrides.push_back("device=" + device);
  if (batch == 0) return;
  overrides.emplace_back("batch=null");
  overrides.push_back(fmt::format("batch.per_device={}", batch));
}

// True if each sample of the task has exactly one class, so that correct predictions can be
// counted.
bool has_one_class_each(const TaskRow& task) { return task.measure("top1") != nullptr; }

}  // namespace

void add_evaluation_flags(CLI::App& command, EvaluationRequest& asked) {
  add_common_flags(command, asked);
  command
      .add_option("--data", asked.data,
                  "Data set to read in place of the run's sets: shards, a folder with one folder "
                  "for each class, or token files. Braces are expanded; repeatable.")
      ->allow_extra_args(false);
  CLI::Option* const set =
      command.add_option("--on", asked.set,
                         "Data set of the run: val, test or a name of data.extra. Default: the "
                         "first of them that the run has.");
  set->excludes("--data");
  command
      .add_option("--set", asked.overrides,
                  "Override a key of the run's recipe, for example data.threads=2. Repeatable.")
      ->allow_extra_args(false);
  command.add_flag("--json", asked.json, "Print one JSON object instead of text.");
  command.add_option("--predictions", asked.predictions,
                     "Write a CSV file with the class probabilities of each sample.");
  command.add_option("--html", asked.html,
                     "Write an HTML page with the most confident mistakes of the model.");
}

void add_prediction_flags(CLI::App& command, PredictionRequest& asked) {
  add_common_flags(command, asked);
  command
      .add_option("INPUT", asked.inputs,
                  "Images, folders of images, or shards (.tar; braces are expanded).")
      ->required();
  command
      .add_option("--top", asked.top,
                  "Number of classes to print for each image, the most likely first.")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  CLI::Option* const csv = command.add_flag("--csv", asked.csv, "Print comma-separated values.");
  command.add_flag("--json", asked.json, "Print one JSON object per image, one per line.")
      ->excludes(csv);
}

std::vector<std::string> overrides_of(const EvaluationRequest& asked, bool reads_tokens) {
  std::vector<std::string> overrides = asked.overrides;
  add_common_overrides(overrides, asked.batch, asked.device);
  if (asked.data.empty()) return overrides;
  nlohmann::json source;
  if (reads_tokens) {
    source["tokens"] = asked.data;
  } else if (std::filesystem::is_directory(asked.data.front())) {
    if (asked.data.size() > 1) {
      throw core::UsageError("--data", "names a folder and something else", "name one folder");
    }
    source["folder"] = asked.data.front();
  } else {
    source["shards"] = asked.data;
  }
  overrides.emplace_back("data.val=null");
  overrides.push_back(fmt::format("data.val={}", core::json_text(source)));
  return overrides;
}

std::vector<std::string> overrides_of(const PredictionRequest& asked) {
  std::vector<std::string> overrides;
  add_common_overrides(overrides, asked.batch, asked.device);
  return overrides;
}

std::string set_of(const EvaluationRequest& asked, const Data& data) {
  if (!asked.data.empty()) return "val";
  std::vector<std::string> names;
  for (const auto& [name, source] : held_out(data)) names.push_back(name);
  if (names.empty()) {
    throw core::UsageError("eval", "the run has no held-out set", "name one: --data SHARDS");
  }
  if (asked.set.empty()) return names.front();
  for (const std::string& name : {asked.set, "extra/" + asked.set}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  }
  throw core::UsageError(
      "--on", fmt::format("\"{}\" is no held-out set of the run", core::printable(asked.set)),
      fmt::format("use one of: {}; or --data SHARDS", fmt::join(names, ", ")));
}

void check_files(const EvaluationRequest& asked, const std::string& task) {
  const TaskRow& row = *find_task(task);
  if (!asked.predictions.empty() && row.reads != TaskRow::Reads::kImages) {
    throw core::UsageError(
        "--predictions",
        fmt::format("is for classifiers of images, and the checkpoint's task is {}", task),
        "leave it out");
  }
  if (!asked.html.empty() && !has_one_class_each(row)) {
    throw core::UsageError(
        "--html",
        fmt::format("is for images of one class each, and the checkpoint's task is {}", task),
        row.reads == TaskRow::Reads::kImages
            ? "leave it out; --predictions writes the probabilities of all samples"
            : "leave it out");
  }
}

void check_labels_images(const std::string& checkpoint, const Recipe& stored) {
  if (reads_tokens(stored.model)) {
    throw core::UsageError(
        checkpoint,
        fmt::format("is a checkpoint of {}, which does not classify images", stored.model.name),
        "scaletrain generate continues a text with it");
  }
  if (!has_one_class_each(*find_task(stored.task))) {
    throw core::UsageError(checkpoint, fmt::format("is of the task {}", stored.task),
                           "name a checkpoint of image_classification");
  }
}

}  // namespace scaletrain::recipe
