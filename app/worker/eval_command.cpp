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
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/log.h"
#include "lib/core/text/command_line.h"
#include "lib/data/order/shard_offsets.h"
#include "lib/data/set/dataset.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/recipe/evaluation.h"
#include "lib/report/class_set_predictions.h"
#include "lib/report/evaluation_text.h"
#include "lib/report/mistakes_page.h"
#include "lib/train/build/evaluation_run.h"
#include "lib/train/loop/evaluate.h"

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
  // Adds the class folder: files of several folders may have the same name.
  std::string key_of(const data::RawSample& sample) const {
    return of_folder_ ? fmt::format("{}/{}", sample.shard, sample.key) : sample.key;
  }
  std::vector<std::string> keys_at(const std::vector<std::int64_t>& positions) const {
    std::vector<std::string> keys;
    keys.reserve(positions.size());
    for (const std::int64_t position : positions) keys.push_back(key_of(read(position)));
    return keys;
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
  std::vector<std::int64_t> positions;
  positions.reserve(predictions.size());
  for (const report::Prediction& one : predictions) positions.push_back(one.position);
  write_file(path, report::predictions_csv(samples.keys_at(positions), predictions, names));
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

// Per-sample results kept during an evaluation: only for tasks with classes, and only as far as
// they are shown or written.
class Kept {
 public:
  Kept(const recipe::EvaluationRequest& asked, const task::Task& task) {
    if (task.exclusive_classes() > 0) {
      one_each_.emplace(task.exclusive_classes());
    } else if (task.independent_classes() > 0 && !asked.predictions.empty()) {
      many_each_.emplace(task.independent_classes());
    }
  }

  train::Watcher watcher() {
    if (!one_each_ && !many_each_) return {};
    return
        [this](const data::Batch& batch, const task::Example& example, const at::Tensor& output) {
          if (one_each_) one_each_->add(batch, example.target, output);
          if (many_each_) many_each_->add(batch, example.target, output);
        };
  }

  // Gathers the results of all ranks; every rank calls it.
  void gather(dist::Group& ranks) {
    if (one_each_) classes = one_each_->gather(ranks);
    if (many_each_) class_sets = many_each_->gather(ranks);
  }

  std::optional<report::Predictions::All> classes;
  std::optional<report::ClassSetPredictions::All> class_sets;

 private:
  std::optional<report::Predictions> one_each_;
  std::optional<report::ClassSetPredictions> many_each_;
};

// Prints the results and writes the files of an evaluation; rank 0 only.
void report_all(const recipe::EvaluationRequest& asked, const train::Run& run, task::Split split,
                report::Evaluation evaluation, const Kept& kept,
                const std::vector<std::string>& names) {
  if (kept.classes || kept.class_sets) {
    const auto set =
        std::dynamic_pointer_cast<const data::Dataset>(run.sets.held_out.at(split).set);
    const Samples samples(set, !task::source_of(run.recipe.data, split).folder.empty());
    if (kept.class_sets) {
      const report::ClassSetPredictions::All& all = *kept.class_sets;
      write_file(asked.predictions,
                 report::class_set_csv(samples.keys_at(all.positions), all, names));
    }
    if (kept.classes) {
      const report::Predictions::All& all = *kept.classes;
      evaluation.classes = report::make_class_report(all, run.task->exclusive_classes(), names);
      if (!asked.predictions.empty()) {
        write_predictions(asked.predictions, samples, all.predictions, names);
      }
      if (!asked.html.empty()) write_page(asked.html, samples, evaluation, all.predictions);
    }
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
  recipe::check_files(asked, recipe.task);
  const std::string name = recipe::set_of(asked, recipe.data);
  exchange::check_tokenizer_of_set(recipe, name, checkpoint);
  const task::Split split = *task::find_split(recipe.data, name);
  const std::unique_ptr<train::Run> run = train::build_evaluation(
      std::move(recipe), env, {checkpoint, asked.weights}, split, models.factories);

  Kept kept(asked, *run->task);
  const train::EvalResult result = train::evaluate(*run, split, kept.watcher());
  train::require_samples(result, name);
  const at::NoGradGuard no_grad;
  kept.gather(run->mesh->data());
  if (env.rank == 0) {
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
               kept, run->sets.held_out.at(split).set->classes());
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
