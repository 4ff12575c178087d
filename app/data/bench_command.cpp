#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "lib/core/buffer.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/loader/image_stream.h"
#include "lib/data/set/open_dataset.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/load.h"
#include "lib/recipe/remote_shards.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kBatch = 64;

struct BenchOptions {
  std::vector<std::string> paths;
  std::int64_t image_size = 224;
  double seconds = 3;  // with one thread, and again with all
  int threads = 0;
  bool as_json = false;
};

recipe::Component default_transform(const std::string& name) {
  recipe::Component component;
  choose(component, *recipe::transforms().find(name));
  return component;
}

// Recipe to measure: the training set of a given recipe, or shards with random crops and flips.
recipe::Recipe recipe_of(const BenchOptions& options) {
  if (options.paths.size() == 1 && options.paths[0].ends_with(".json")) {
    recipe::Recipe recipe = recipe::load_recipe(options.paths[0]);
    const storage::Stores stores(recipe.storage, std::nullopt);
    recipe::replace_remote_groups(
        recipe, [&stores](const std::string& name) { return shards_of_group(stores, name); });
    return recipe;
  }
  recipe::Recipe recipe;
  recipe.data.train.shards = resolve_shards(storage::Stores(), options.paths);
  for (const std::string& path : recipe.data.train.shards) {
    if (!core::is_compressed(path)) continue;
    throw core::UsageError(core::shown_path(path),
                           "is compressed, and compressed shards are read from data.cache",
                           "name a recipe with data.cache: scaletrain data bench RECIPE.json");
  }
  recipe.data.train.augment = {default_transform("random_resized_crop"),
                               default_transform("random_flip")};
  recipe.data.image_size = options.image_size;
  return recipe;
}

struct Run {
  std::int64_t images = 0;
  double seconds = 0;
  data::StageTimes stages;

  double rate() const { return static_cast<double>(images) / seconds; }
};

// Reads whole batches with this number of threads, as training does.
Run run_loader(const recipe::Data& data, const std::shared_ptr<const data::Dataset>& dataset,
               double seconds, int threads) {
  data::LoaderOptions options = data::loader_options(data);
  options.num_classes = std::numeric_limits<std::int32_t>::max();
  options.threads = threads;
  const std::int64_t samples =
      options.samples_per_epoch > 0 ? options.samples_per_epoch : dataset->size();
  const auto pool = core::make_host_pool();
  const auto loader =
      data::train_images(dataset, options, {.per_device = std::min(kBatch, samples)}, *pool);
  for (int i = 0; i < options.prefetch; ++i) loader->next();  // buffers and caches are warm then
  Run run;
  const core::SteadyTime start = core::now();
  while (core::seconds_since(start) < seconds || run.images == 0) {
    const data::Batch batch = *loader->next();
    run.images += batch.count;
    run.stages += batch.stages;
  }
  run.seconds = core::seconds_since(start);
  return run;
}

void run_bench(const BenchOptions& options) {
  const recipe::Recipe recipe = recipe_of(options);
  const recipe::Data& data = recipe.data;
  const auto dataset = data::open_dataset(
      data.train, data.index_cache,
      {.lazy = data.order == "streamed",
       .stores = std::make_shared<const storage::Stores>(recipe.storage, data.cache),
       .label = data.label,
       .skip_bad = data.bad_samples.policy == "skip"});
  const int threads =
      resolve_threads(options.threads > 0 ? options.threads : static_cast<int>(data.threads));
  const Run one = run_loader(data, dataset, options.seconds, 1);
  const Run all = threads == 1 ? one : run_loader(data, dataset, options.seconds, threads);
  const auto images = static_cast<double>(one.images);
  const std::array<std::pair<std::string, double>, 3> rates{
      {{"read", images / one.stages.read_s},
       {"decode", images / one.stages.decode_s},
       {"augment", images / one.stages.augment_s}}};
  const auto& slowest = *std::min_element(
      rates.begin(), rates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (options.as_json) {
    nlohmann::ordered_json result;
    for (const auto& [name, rate] : rates) result[name] = rate;
    result["loader"] = all.rate();
    result["threads"] = threads;
    result["limit"] = slowest.first;
    return print_json(result);
  }
  std::string text = "images/s, one thread:\n";
  for (const auto& [name, rate] : rates) text += fmt::format("  {:<8} {:10.0f}\n", name, rate);
  print(fmt::format("{}the loader, {}: {:.0f} images/s; most time goes to: {}\n", text,
                    core::counted(threads, "thread"), all.rate(), slowest.first));
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* const command =
      app.add_subcommand("bench", "measure images/s of reading, decoding and augmenting");
  command
      ->add_option("PATH", options->paths,
                   "Recipe (.json), or shards, which are read with random crops and flips.")
      ->required();
  command
      ->add_option("--image-size", options->image_size,
                   "Image size in pixels for shards; a recipe has its own.")
      ->check(CLI::Range(8, 4096));
  command
      ->add_option("--seconds", options->seconds,
                   "Duration in seconds, once with one thread and once with all.")
      ->check(CLI::Range(0.01, 3600.0));
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_bench(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
