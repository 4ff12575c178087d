#include "app/data/loader_speed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "app/data/files/options.h"
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

recipe::Component default_transform(const std::string& name) {
  recipe::Component component;
  choose(component, *recipe::transforms().find(name));
  return component;
}

data::LoaderOptions options_to_measure(const recipe::Data& data, data::ReadAheadSize size) {
  data::LoaderOptions options = data::loader_options(data);
  options.num_classes = std::numeric_limits<std::int32_t>::max();
  options.threads = size.threads;
  options.prefetch = size.prefetch;
  options.search_threads = false;
  return options;
}

std::unique_ptr<data::BatchStream> open_loader(const std::shared_ptr<const data::Dataset>& dataset,
                                               const data::LoaderOptions& options,
                                               core::BufferPool& pool) {
  const std::int64_t samples =
      options.samples_per_epoch > 0 ? options.samples_per_epoch : dataset->size();
  return data::train_images(dataset, options, {.per_device = std::min(kBatch, samples)}, pool);
}

}  // namespace

recipe::Recipe recipe_to_measure(const std::vector<std::string>& paths, std::int64_t image_size) {
  if (paths.size() == 1 && paths[0].ends_with(".json")) {
    recipe::Recipe recipe = recipe::load_recipe(paths[0]);
    const storage::Stores stores(recipe.storage, std::nullopt);
    recipe::replace_remote_groups(
        recipe, [&stores](const std::string& name) { return shards_of_group(stores, name); });
    return recipe;
  }
  recipe::Recipe recipe;
  recipe.data.train.shards = resolve_shards(storage::Stores(), paths);
  for (const std::string& path : recipe.data.train.shards) {
    if (!core::is_compressed(path)) continue;
    throw core::UsageError(core::shown_path(path),
                           "is compressed, and compressed shards are read from data.cache",
                           "name a recipe with data.cache: scaletrain data bench RECIPE.json");
  }
  recipe.data.train.augment = {default_transform("random_resized_crop"),
                               default_transform("random_flip")};
  recipe.data.image_size = image_size;
  return recipe;
}

std::shared_ptr<const data::Dataset> open_training_set(const recipe::Recipe& recipe) {
  const recipe::Data& data = recipe.data;
  return data::open_dataset(
      data.train, data.index_cache,
      {.lazy = data.order == "streamed",
       .stores = std::make_shared<const storage::Stores>(recipe.storage, data.cache),
       .label = data.label,
       .skip_bad = data.bad_samples.policy == "skip"});
}

LoaderSpeed loader_speed(const recipe::Data& data,
                         const std::shared_ptr<const data::Dataset>& dataset, double seconds,
                         data::ReadAheadSize size) {
  const data::LoaderOptions options = options_to_measure(data, size);
  const auto pool = core::make_host_pool();
  const auto loader = open_loader(dataset, options, *pool);
  for (int i = 0; i < options.prefetch; ++i) loader->next();  // buffers and caches are warm then
  LoaderSpeed speed;
  speed.size = size;
  const core::SteadyTime start = core::now();
  while (core::seconds_since(start) < seconds || speed.images == 0) {
    const data::Batch batch = *loader->next();
    speed.images += batch.count;
    speed.stages += batch.stages;
  }
  speed.seconds = core::seconds_since(start);
  return speed;
}

LoaderSpeed best_loader_speed(const recipe::Data& data,
                              const std::shared_ptr<const data::Dataset>& dataset, double most_s) {
  constexpr double kWindows = 12;  // usual number until a search is settled
  const double window_s = most_s / kWindows;
  data::ThreadSearch search(
      {.threads = resolve_threads(0), .prefetch = static_cast<int>(data.prefetch)});
  const core::SteadyTime start = core::now();
  LoaderSpeed best;
  do {
    const data::ReadAheadSize size = search.size();
    const LoaderSpeed speed = loader_speed(data, dataset, window_s, size);
    search.add(speed.images_per_s(), /*waited_share=*/1);
    if (search.best() == size) best = speed;
  } while (!search.is_settled() && core::seconds_since(start) < most_s);
  return best;
}

}  // namespace scaletrain::app
