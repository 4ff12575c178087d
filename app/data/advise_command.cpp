#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/loader_advice.h"
#include "app/data/loader_speed.h"
#include "lib/core/error.h"
#include "lib/core/process/cores.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/image/decode.h"
#include "lib/data/loader/image_stream.h"
#include "lib/observe/line_follower.h"
#include "lib/observe/run_times.h"
#include "lib/recipe/recipe.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSampledImages = 32;
constexpr std::int64_t kSampledShards = 3;

struct AdviseOptions {
  std::string path;  // recipe, folder of a run, or shards
  std::int64_t image_size = 224;
  double seconds = 20;
  double needed_per_s = 0;  // 0: of the run; not known for a recipe
  int ranks = 0;            // 0: those of the run; 1 for a recipe
  bool as_json = false;
};

int ranks_of(const fs::path& run) {
  std::ifstream stream(run / "environment.json");
  const auto environment = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return environment.is_object() ? environment.value("world_size", 1) : 1;
}

// Facts of a run: the rate of its last metrics line, had it not waited for data.
void add_run(const fs::path& run, LoaderFacts& facts) {
  nlohmann::ordered_json last;
  observe::LineFollower(run / "metrics.jsonl")
      .read([] {},
            [&last](const nlohmann::ordered_json& record) {
              if (record.value("event", "") == "train") last = record;
            });
  if (last.is_null()) {
    throw core::UsageError(core::shown_path(run.string()), "has no training step yet",
                           "name its recipe, with --images-per-s for the rate of training");
  }
  const double compute_s = last.value("compute_time", 0.0);
  const double step_s = compute_s + last.value("data_time", 0.0);
  const double rate = last.value("samples_per_s", 0.0) / facts.ranks;
  if (compute_s > 0) facts.needed_per_s = rate * step_s / compute_s;
  const observe::RunTimes times = observe::read_run_times(run);
  if (times.wall_s > 0) {
    facts.copy_share = times.of(core::TimeRow::kHostToDevice) / times.wall_s;
  }
}

// Decodes some images, evenly spaced over the set.
void add_images(const data::Dataset& dataset, data::DecodeOptions how, LoaderFacts& facts) {
  data::Decoder decoder(how);
  data::Image image;
  const std::int64_t shards = dataset.shard_count();
  const std::int64_t most = std::min(kSampledImages, std::max<std::int64_t>(dataset.size(), 1));
  double pixels = 0, raw = 0, count = 0;
  for (std::int64_t i = 0; i < most; ++i) {
    const std::int64_t shard = i * shards / most;
    const std::int64_t samples = dataset.shard_size(shard);
    if (samples == 0) continue;
    const data::RawSample sample = dataset.read(shard, i * samples / most);
    try {
      decoder.decode(sample.image, image);
    } catch (const std::invalid_argument&) {  // bad samples are the loader's and `check`'s concern
      continue;
    }
    pixels += static_cast<double>(image.width * image.height);
    raw += sample.extension == "rgb8" ? 1 : 0;
    ++count;
  }
  if (count == 0) return;
  facts.mean_pixels = pixels / count;
  facts.raw_share = raw / count;
}

void add_shards(const recipe::Recipe& recipe, const data::Dataset& dataset, LoaderFacts& facts) {
  facts.shards = dataset.shard_count();
  const storage::Stores stores(recipe.storage, std::nullopt);
  double bytes = 0, count = 0;
  for (std::int64_t shard = 0; shard < std::min(kSampledShards, facts.shards); ++shard) {
    const std::string path = dataset.shard_path(shard);
    if (path.empty()) return;
    facts.is_remote = facts.is_remote || core::is_url(path);
    bytes += static_cast<double>(stores.open(path)->identity().bytes);
    ++count;
  }
  if (count > 0) facts.shard_bytes = bytes / count;
}

LoaderFacts measure(const recipe::Recipe& recipe, double seconds) {
  const recipe::Data& data = recipe.data;
  const auto dataset = open_training_set(recipe);
  LoaderFacts facts;
  facts.cores = core::usable_cores();
  facts.threads = data.threads;
  facts.prefetch = data.prefetch;
  facts.threads_searched = data.search_threads;
  facts.is_streamed = data.order == "streamed";
  facts.has_cache = data.cache.has_value();
  facts.image_size = data.image_size;
  const auto prefetch = static_cast<int>(data.prefetch);
  const LoaderSpeed one =
      loader_speed(data, dataset, seconds / 8, {.threads = 1, .prefetch = prefetch});
  const auto images = static_cast<double>(one.images);
  facts.read_s = one.stages.read_s / images;
  facts.decode_s = one.stages.decode_s / images;
  facts.augment_s = one.stages.augment_s / images;
  const LoaderSpeed best = best_loader_speed(data, dataset, seconds);
  facts.best = best.size;
  facts.images_per_s = best.images_per_s();
  add_images(*dataset, data::loader_options(data).decode, facts);
  add_shards(recipe, *dataset, facts);
  return facts;
}

void run_advise(const AdviseOptions& options) {
  const fs::path of_run = fs::path(options.path) / "recipe.json";
  const bool is_run = fs::exists(of_run);
  const recipe::Recipe recipe =
      recipe_to_measure({is_run ? of_run.string() : options.path}, options.image_size);
  if (!recipe.data.train.tokens.empty()) {
    throw core::UsageError(core::shown_path(options.path),
                           "trains on tokens, which need no decoding", "name a recipe for images");
  }
  LoaderFacts facts = measure(recipe, options.seconds);
  facts.ranks = options.ranks > 0 ? options.ranks : is_run ? ranks_of(options.path) : 1;
  if (is_run) add_run(options.path, facts);
  if (options.needed_per_s > 0) facts.needed_per_s = options.needed_per_s;
  const LoaderAdvice advice = advise(facts);
  if (options.as_json) return print_json(advice_json(facts, advice));
  print(advice_text(facts, advice));
}

}  // namespace

void add_advise_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<AdviseOptions>();
  CLI::App* const command =
      app.add_subcommand("advise", "say which stage limits the data loader and what would help");
  command
      ->add_option("PATH", options->path,
                   "Recipe (.json); or the folder of a run, whose rate of training is then known; "
                   "or shards, which are read with random crops and flips.")
      ->required();
  command
      ->add_option("--image-size", options->image_size,
                   "Image size in pixels for shards; a recipe has its own.")
      ->check(CLI::Range(8, 4096));
  command
      ->add_option("--images-per-s", options->needed_per_s,
                   "Images that a rank trains on in a second. Default: from RUN; for a recipe, not "
                   "known: the fastest loader is looked for.")
      ->check(CLI::Range(0.001, 1e9));
  command->add_option("--ranks", options->ranks, "Ranks of the job. Default: those of RUN, else 1.")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--seconds", options->seconds, "Duration of the measurement in seconds.")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_advise(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
