#include "app/worker/predict_command.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/worker/stored_run.h"
#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/command_line.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/loader/image_stream.h"
#include "lib/data/loader/threads.h"
#include "lib/data/order/shard_offsets.h"
#include "lib/data/set/classes_file.h"
#include "lib/data/set/listed_files.h"
#include "lib/data/set/shards.h"
#include "lib/dist/device.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/catalog/braces.h"
#include "lib/recipe/evaluation.h"
#include "lib/report/prediction.h"
#include "lib/task/image_sets.h"
#include "lib/train/build/evaluation_run.h"

namespace scaletrain::app {
namespace {

using Json = nlohmann::ordered_json;

struct Input {
  std::shared_ptr<const data::Dataset> images;  // null if no image can be read
  std::int64_t unread = 0;
};

bool is_shard(const std::string& path) {
  return core::is_url(path) || path.ends_with(".tar") || path.find('{') != std::string::npos;
}

Input open_shards(const recipe::PredictionRequest& asked, const recipe::Recipe& recipe,
                  bool warns) {
  std::vector<std::string> paths;
  for (const std::string& input : asked.inputs) {
    std::string mistake;
    const std::vector<std::string> expanded = recipe::expand_braces(input, mistake);
    if (expanded.empty()) throw core::UsageError(input, mistake, "correct the braces");
    paths.insert(paths.end(), expanded.begin(), expanded.end());
  }
  return {.images = data::open_shards(paths, recipe.data.index_cache,
                                      {.warns = warns, .ignores_classes = true})};
}

// Opens shards or images. `warns` is set on one rank only.
Input open_input(const recipe::PredictionRequest& asked, const recipe::Recipe& recipe, bool warns) {
  const auto shards = std::count_if(asked.inputs.begin(), asked.inputs.end(), is_shard);
  if (shards == std::ssize(asked.inputs)) return open_shards(asked, recipe, warns);
  if (shards > 0) {
    throw core::UsageError("predict", "shards and images are named together",
                           "run it once for each kind");
  }
  data::ListedFiles listed = data::list_files(asked.inputs);
  for (const auto& [path, reason] : listed.unread) {
    if (!warns) break;
    core::warn("{}: {}", core::printable(path), reason);
  }
  Input input;
  input.unread = std::ssize(listed.unread);
  if (!listed.files.empty()) input.images = data::open_files(std::move(listed.files));
  return input;
}

// Prediction lines for tasks with classes, one per image in order.
class LabelLines {
 public:
  LabelLines(const recipe::PredictionRequest& asked, std::vector<std::string> names)
      : csv_(asked.csv), json_(asked.json), names_(std::move(names)) {}

  void add(const std::vector<std::string>& keys,
           const std::vector<report::Prediction>& predictions) {
    if (keys.empty()) return;
    std::string text;
    if (json_) {
      for (std::size_t i = 0; i < keys.size(); ++i) text += json_line(keys[i], predictions[i]);
    } else if (csv_) {
      if (first_) text += csv_head(predictions.front().top.size());
      for (std::size_t i = 0; i < keys.size(); ++i) text += csv_row(keys[i], predictions[i]);
    } else {
      text = table(keys, predictions);
    }
    first_ = false;
    std::fputs(text.c_str(), stdout);
    core::flush_output();
  }

 private:
  std::string json_line(const std::string& key, const report::Prediction& prediction) const {
    Json guesses = Json::array();
    for (const report::Guess& guess : prediction.top) {
      guesses.push_back({{"class", guess.class_number},
                         {"label", data::class_name(names_, guess.class_number)},
                         {"probability", guess.probability}});
    }
    return core::json_text(Json{{"image", key}, {"predictions", std::move(guesses)}}) + "\n";
  }

  static std::string csv_head(std::size_t top) {
    std::vector<std::string> cells{"image", "label", "probability"};
    for (std::size_t k = 2; k <= top; ++k) {
      cells.push_back(fmt::format("label_{}", k));
      cells.push_back(fmt::format("probability_{}", k));
    }
    return core::csv_line(cells);
  }

  std::string csv_row(const std::string& key, const report::Prediction& prediction) const {
    std::vector<std::string> cells{key};
    for (const report::Guess& guess : prediction.top) {
      cells.push_back(data::class_name(names_, guess.class_number));
      cells.push_back(fmt::format("{}", static_cast<float>(guess.probability)));
    }
    return core::csv_line(cells);
  }

  std::string table(const std::vector<std::string>& keys,
                    const std::vector<report::Prediction>& predictions) const {
    std::vector<std::vector<std::string>> lines;
    lines.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::vector<std::string> cells{core::printable(keys[i])};
      for (const report::Guess& guess : predictions[i].top) {
        cells.push_back(fmt::format("{} {:.2f} %",
                                    core::printable(data::class_name(names_, guess.class_number)),
                                    100 * guess.probability));
      }
      lines.push_back(std::move(cells));
    }
    return core::text_table(lines);
  }

  bool csv_, json_, first_ = true;
  std::vector<std::string> names_;
};

// Keys of the samples at these positions.
std::vector<std::string> keys_of(const data::Dataset& images, const data::ShardOffsets& offsets,
                                 const std::vector<report::Prediction>& predictions) {
  std::vector<std::string> keys;
  keys.reserve(predictions.size());
  for (const report::Prediction& one : predictions) {
    const data::SamplePlace place = offsets.locate(one.position);
    keys.push_back(images.read(place.shard, place.sample).key);
  }
  return keys;
}

std::unique_ptr<data::BatchStream> open_stream(const train::Run& run, const core::WorkerEnv& env,
                                               const std::shared_ptr<const data::Dataset>& images) {
  data::LoaderOptions options = data::loader_options(run.recipe.data);
  options.num_classes = task::ImageSets::kAnyClass;
  options.seed = run.recipe.seed;
  options.skip_bad = true;
  if (options.threads == 0) {
    options.threads = data::automatic_threads(env.local_rank, env.local_world_size);
  }
  const data::ReaderSlice slice{.reader = run.mesh->reader(),
                                .readers = run.mesh->plan().readers(),
                                .per_device = run.batch.per_device};
  return data::eval_images(images, options, slice, *run.sets.pool);
}

// Predicts all images, batch by batch on each rank; rank 0 prints the results as they come. Returns
// how many do not decode on any rank, each with a warning. Every rank calls it.
std::int64_t predict_all(train::Run& run, const core::WorkerEnv& env,
                         const std::shared_ptr<const data::Dataset>& images, std::int64_t top,
                         LabelLines& printer) {
  const auto stream = open_stream(run, env, images);
  const data::ShardOffsets offsets(data::shard_sizes(*images));
  dist::Group& ranks = run.mesh->data();
  const std::int64_t count = images->size();
  const at::Tensor bad = at::zeros({}, at::TensorOptions(at::kLong).device(ranks.device()));
  for (std::int64_t begin = 0; begin < count; begin += run.batch.global) {
    report::Predictions predictions(run.task->exclusive_classes(), top);
    if (const auto batch = stream->next()) {
      for (const data::BadSample& sample : batch->skipped) {
        core::warn("{}: {}", sample.place, sample.reason);
      }
      bad.add_(std::ssize(batch->skipped));
      if (batch->count > 0) {
        const at::Tensor logits =
            run.engine->predict(run.task->prepare(*batch, /*training=*/false));
        const at::Tensor labels = at::zeros({batch->count}, logits.options().dtype(at::kLong));
        predictions.add(*batch, labels, logits);
      }
    }
    const std::vector<report::Prediction> all = predictions.gather(ranks).predictions;
    if (env.rank == 0) printer.add(keys_of(*images, offsets, all), all);
  }
  ranks.all_reduce_sum(bad, "unread images").wait();
  return ranks.to_host(bad).item<std::int64_t>();
}

void predict_by(const recipe::PredictionRequest& asked, const Models& models) {
  const core::WorkerEnv env = core::read_worker_env();
  const std::filesystem::path checkpoint = format::checkpoint_at(asked.checkpoint);
  recipe::Recipe recipe = recipe_of(checkpoint, models.catalog, recipe::overrides_of(asked));
  recipe::check_labels_images(checkpoint.string(), recipe);
  const Input input = open_input(asked, recipe, env.rank == 0);
  std::int64_t bad = input.unread;
  std::int64_t all = input.unread;
  if (input.images) {
    const std::unique_ptr<train::Run> run = train::build_evaluation(
        std::move(recipe), env, {checkpoint, asked.weights}, std::nullopt, models.factories);
    run->sets.pool = dist::make_batch_pool(run->group->device());
    const at::NoGradGuard no_grad;
    LabelLines printer(asked, classes_of(checkpoint));
    bad += predict_all(*run, env, input.images, asked.top, printer);
    all += input.images->size();
    run->mesh->end("the end");
  }
  if (bad == 0 || env.rank != 0) return;
  throw core::DataError("predict",
                        fmt::format("{} of {} cannot be read", bad, core::counted(all, "image")),
                        "the warnings above name them");
}

}  // namespace

int run_predict(int argc, char** argv, const Models& models) {
  CLI::App app("Label images by a classifier.", "scaletrain predict");
  recipe::PredictionRequest asked;
  recipe::add_prediction_flags(app, asked);
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  predict_by(asked, models);
  return 0;
}

}  // namespace scaletrain::app
