#include "app/worker/eval_command.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/worker/stored_run.h"
#include "lib/core/command_line.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/worker_env.h"
#include "lib/data/order/shard_offsets.h"
#include "lib/data/set/dataset.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_weights.h"
#include "lib/recipe/evaluation.h"
#include "lib/report/evaluation_text.h"
#include "lib/report/mistakes_page.h"
#include "lib/train/evaluate.h"
#include "lib/train/evaluation_run.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPictures = 64;

// The samples of a set by their positions.
class Samples {
 public:
  Samples(std::shared_ptr<const data::Dataset> set, bool of_folder)
      : set_(std::move(set)), offsets_(data::shard_sizes(*set_)), of_folder_(of_folder) {}

  data::RawSample read(std::int64_t position) const {
    const data::SamplePlace place = offsets_.locate(position);
    return set_->read(place.shard, place.sample);
  }
  // Of a folder's files the names alone may be those of several classes.
  std::string key_of(const data::RawSample& sample) const {
    return of_folder_ ? fmt::format("{}/{}", sample.shard, sample.key) : sample.key;
  }

 private:
  std::shared_ptr<const data::Dataset> set_;
  data::ShardOffsets offsets_;
  bool of_folder_;
};

void write_file(const std::string& path, const std::string& text) {
  core::write_durably(core::system_disk(), path, text);
}

void write_predictions(const std::string& path, const Samples& samples,
                       const std::vector<report::Prediction>& predictions,
                       const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  keys.reserve(predictions.size());
  for (const report::Prediction& one : predictions) {
    keys.push_back(samples.key_of(samples.read(one.position)));
  }
  write_file(path, report::predictions_csv(keys, predictions, names));
}

void write_page(const std::string& path, const Samples& samples,
                const report::Evaluation& evaluation,
                const std::vector<report::Prediction>& predictions) {
  std::vector<report::ShownPicture> pictures;
  pictures.reserve(kMostPictures);
  for (const std::size_t i : report::worst_mistakes(predictions, kMostPictures)) {
    data::RawSample sample = samples.read(predictions[i].position);
    pictures.push_back({.prediction = predictions[i],
                        .key = samples.key_of(sample),
                        .extension = sample.extension,
                        .bytes = std::move(sample.image)});
  }
  write_file(path, report::mistakes_page(evaluation, pictures));
}

// The checkpoint's, otherwise the set's; a set that names them otherwise has other classes.
std::vector<std::string> names_for(const fs::path& checkpoint, const data::SampleSet& set,
                                   const std::string& where) {
  std::vector<std::string> names = classes_of(checkpoint);
  if (names.empty()) return set.classes();
  if (!set.classes().empty() && set.classes() != names) {
    core::warn("{} names its classes otherwise than the checkpoint, whose names are shown", where);
  }
  return names;
}

void refuse_files(const recipe::EvaluationRequest& asked) {
  for (const auto& [flag, path] :
       {std::pair{"--predictions", &asked.predictions}, std::pair{"--html", &asked.html}}) {
    if (path->empty()) continue;
    throw core::UsageError(
        flag, "is for classifiers of images, and the checkpoint's task is another", "leave it out");
  }
}

// What rank 0 shows and writes.
void report_all(const recipe::EvaluationRequest& asked, const train::Run& run, task::Split split,
                report::Evaluation evaluation, const report::Predictions::All* all,
                const std::vector<std::string>& names) {
  if (all != nullptr) {
    evaluation.classes = report::make_class_report(*all, run.task->exclusive_classes(), names);
    const auto set =
        std::dynamic_pointer_cast<const data::Dataset>(run.sets.held_out.at(split).set);
    const Samples samples(set, !task::source_of(run.recipe.data, split).folder.empty());
    if (!asked.predictions.empty()) {
      write_predictions(asked.predictions, samples, all->predictions, names);
    }
    if (!asked.html.empty()) write_page(asked.html, samples, evaluation, all->predictions);
  }
  const std::string text =
      asked.json ? report::evaluation_json(evaluation) : report::evaluation_text(evaluation);
  std::fputs(text.c_str(), stdout);
  core::flush_output();
}

void evaluate_checkpoint(const recipe::EvaluationRequest& asked, const Models& models) {
  const core::WorkerEnv env = core::read_worker_env();
  if (env.world_size > 1) core::set_log_prefix(fmt::format("[rank {}] ", env.rank));
  const fs::path checkpoint = format::checkpoint_at(asked.checkpoint);
  const bool reads_tokens = recipe::reads_tokens(recipe_of(checkpoint, models.catalog).model);
  recipe::Recipe recipe =
      recipe_of(checkpoint, models.catalog, recipe::overrides_of(asked, reads_tokens));
  const std::string name = recipe::set_of(asked, recipe.data);
  const task::Split split = *task::find_split(recipe.data, name);
  const std::unique_ptr<train::Run> run = train::build_evaluation(
      std::move(recipe), env, {checkpoint, asked.weights}, split, models.factories);

  const std::int64_t classes = run->task->exclusive_classes();
  std::optional<report::Predictions> predictions;
  train::Watcher watcher;
  if (classes > 0) {
    predictions.emplace(classes);
    watcher = [&predictions](const data::Batch& batch, const task::Example& example,
                             const at::Tensor& output) {
      predictions->add(batch, example.target, output);
    };
  } else {
    refuse_files(asked);
  }
  const train::EvalResult result = train::evaluate(*run, split, watcher);
  const at::NoGradGuard no_grad;
  std::optional<report::Predictions::All> all;
  if (predictions) all = predictions->gather(run->mesh->data());
  if (env.rank == 0) {
    const std::vector<std::string> names =
        names_for(checkpoint, *run->sets.held_out.at(split).set, name);
    report_all(asked, *run, split,
               {.checkpoint = checkpoint.string(),
                .weights = format::weights_name(format::weights_file(checkpoint, asked.weights)),
                .set = asked.data.empty() ? name : fmt::format("{}", fmt::join(asked.data, " ")),
                .step = run->state.step,
                .count = result.count,
                .skipped = result.skipped,
                .counted = run->task->row().counted,
                .measures = result.measures,
                .classes = std::nullopt},
               all ? &*all : nullptr, names);
  }
  run->mesh->end("the end");
}

}  // namespace

int run_eval(int argc, char** argv, const Models& models) {
  CLI::App app("Evaluate a checkpoint.", "scaletrain eval");
  recipe::EvaluationRequest asked;
  recipe::add_evaluation_flags(app, asked);
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  evaluate_checkpoint(asked, models);
  return 0;
}

}  // namespace scaletrain::app
