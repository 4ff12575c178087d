#include "app/data/bench_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/data/options.h"
#include "app/data/output.h"
#include "lib/core/buffer.h"
#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/data/dataset.h"
#include "lib/data/decode.h"
#include "lib/data/loader.h"
#include "lib/data/transform.h"
#include "lib/recipe/lists.h"
#include "lib/recipe/load.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMostSamples = 2000;      // that the stages are tried with
constexpr std::size_t kMostBytes = 256UL << 20;  // of them
constexpr std::int64_t kMostImages = 64;         // decoded, for the transforms
constexpr std::int64_t kBatch = 64;

struct BenchOptions {
  std::vector<std::string> paths;
  std::int64_t image_size = 224;
  double seconds = 3;  // a stage
  int threads = 0;
  bool as_json = false;
};

recipe::Component default_transform(const std::string& name) {
  recipe::Component component;
  choose(component, *recipe::transforms().find(name));
  return component;
}

// What is measured: the training set of a recipe, or shards with random crops and flips.
recipe::Data data_of(const BenchOptions& options) {
  if (options.paths.size() == 1 && options.paths[0].ends_with(".json")) {
    return recipe::load_recipe(options.paths[0]).data;
  }
  recipe::Data data;
  data.train.shards = resolve_shards(options.paths);
  data.train.augment = {default_transform("random_resized_crop"), default_transform("random_flip")};
  data.image_size = options.image_size;
  return data;
}

core::Philox draws_of(std::int64_t position) {
  return {0, core::DrawPurpose::kAugment, 0, static_cast<std::uint64_t>(position)};
}

// One thread, each stage alone.
class Stages {
 public:
  Stages(const recipe::Data& data, std::shared_ptr<const data::Dataset> dataset, double seconds)
      : data_(data),
        dataset_(std::move(dataset)),
        seconds_(seconds),
        transforms_(data::make_transforms(data.train.augment, data.normalize)),
        decoder_({.exif_orientation = data.exif_orientation}) {
    std::size_t bytes = 0;
    for (std::int64_t shard = 0; shard < dataset_->shard_count(); ++shard) {
      for (std::int64_t i = 0; i < dataset_->shard_size(shard); ++i) {
        if (std::ssize(samples_) == kMostSamples || bytes > kMostBytes) return;
        places_.emplace_back(shard, i);
        samples_.push_back(dataset_->read(shard, i));
        bytes += samples_.back().image.size();
      }
    }
  }

  double read() const {
    return rate([&](std::int64_t i) {
      const auto& [shard, sample] = places_[index(i, places_.size())];
      const core::SteadyTime start = core::now();
      const data::RawSample raw = dataset_->read(shard, sample);
      return core::seconds_since(start);
    });
  }

  double decode() {
    return rate([&](std::int64_t i) {
      const core::SteadyTime start = core::now();
      decode_sample(i, work_.image);
      return core::seconds_since(start);
    });
  }

  // Infinite where there is nothing to do.
  double augment() {
    if (transforms_.changes.empty()) return std::numeric_limits<double>::infinity();
    std::vector<data::Image> images(
        static_cast<std::size_t>(std::min<std::int64_t>(kMostImages, std::ssize(samples_))));
    for (std::size_t i = 0; i < images.size(); ++i) {
      decode_sample(static_cast<std::int64_t>(i), images[i]);
    }
    return rate([&](std::int64_t i) {
      work_.image = images[index(i, images.size())];
      core::Philox draws = draws_of(i);
      const core::SteadyTime start = core::now();
      transforms_.apply(work_, draws);
      return core::seconds_since(start);
    });
  }

 private:
  static std::size_t index(std::int64_t i, std::size_t size) {
    return static_cast<std::size_t>(i) % size;
  }

  void decode_sample(std::int64_t i, data::Image& out) {
    core::Philox draws = draws_of(i);
    decoder_.decode_view(
        samples_[index(i, samples_.size())].image,
        [&](std::int64_t width, std::int64_t height) {
          return transforms_.view(width, height, data_.image_size, draws);
        },
        out);
  }

  // Images a second; `once` takes an image's number and returns the seconds that count.
  template <class Once>
  double rate(const Once& once) const {
    const core::SteadyTime start = core::now();
    double counted_s = 0;
    std::int64_t images = 0;
    while (core::seconds_since(start) < seconds_ || images == 0) counted_s += once(images++);
    return static_cast<double>(images) / counted_s;
  }

  const recipe::Data& data_;
  std::shared_ptr<const data::Dataset> dataset_;
  double seconds_;
  data::Transforms transforms_;
  data::Decoder decoder_;
  data::Workspace work_;
  std::vector<std::pair<std::int64_t, std::int64_t>> places_;  // shard and sample
  std::vector<data::RawSample> samples_;
};

// Whole batches, by all threads.
double loader_rate(const recipe::Data& data, std::shared_ptr<const data::Dataset> dataset,
                   double seconds, int threads) {
  const std::int64_t batch = std::min(kBatch, dataset->size());
  const data::LoaderOptions options{.image_size = data.image_size,
                                    .num_classes = std::numeric_limits<std::int32_t>::max(),
                                    .threads = threads,
                                    .prefetch = static_cast<int>(data.prefetch),
                                    .shuffle_shards = data.shuffle_shards,
                                    .augment = data.train.augment,
                                    .normalize = data.normalize,
                                    .exif_orientation = data.exif_orientation};
  const auto pool = core::make_host_pool();
  data::TrainLoader loader(std::move(dataset), options, {.per_device = batch}, *pool);
  for (std::int64_t i = 0; i < data.prefetch; ++i)
    loader.next();  // buffers and caches are warm then
  std::int64_t images = 0;
  const core::SteadyTime start = core::now();
  while (core::seconds_since(start) < seconds || images == 0) images += loader.next().count;
  return static_cast<double>(images) / core::seconds_since(start);
}

void run_bench(const BenchOptions& options) {
  const recipe::Data data = data_of(options);
  const auto dataset = data::open_dataset(data.train, data.index_cache);
  const int threads =
      resolve_threads(options.threads > 0 ? options.threads : static_cast<int>(data.threads));
  Stages stages(data, dataset, options.seconds);
  const std::array<std::pair<std::string, double>, 3> rates{
      {{"read", stages.read()}, {"decode", stages.decode()}, {"augment", stages.augment()}}};
  const double loader = loader_rate(data, dataset, options.seconds, threads);
  const auto& slowest = *std::min_element(
      rates.begin(), rates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (options.as_json) {
    nlohmann::ordered_json result;
    for (const auto& [name, rate] : rates) result[name] = rate;  // infinite: null
    result["loader"] = loader;
    result["threads"] = threads;
    result["limit"] = slowest.first;
    return print_json(result);
  }
  std::string text = "images/s, one thread:\n";
  for (const auto& [name, rate] : rates) {
    text += rate < 1e9 ? fmt::format("  {:<8} {:10.0f}\n", name, rate)
                       : fmt::format("  {:<8} nothing to do\n", name);
  }
  print(fmt::format("{}the loader, {} threads: {:.0f} images/s; most time goes to: {}\n", text,
                    threads, loader, slowest.first));
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* const command =
      app.add_subcommand("bench", "measure images/s of reading, decoding and augmenting");
  command
      ->add_option("PATH", options->paths,
                   "a recipe (.json), or shards as elsewhere, with random crops and flips")
      ->required();
  command->add_option("--image-size", options->image_size, "of shards; a recipe has its own")
      ->check(CLI::Range(8, 4096));
  command->add_option("--seconds", options->seconds, "how long a stage is measured")
      ->check(CLI::Range(0.01, 3600.0));
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_bench(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
