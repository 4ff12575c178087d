#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/loader_speed.h"
#include "lib/core/text/text.h"

namespace scaletrain::app {
namespace {

struct BenchOptions {
  std::vector<std::string> paths;
  std::int64_t image_size = 224;
  double seconds = 3;  // with one thread, and again with all
  int threads = 0;
  bool as_json = false;
};

void run_bench(const BenchOptions& options) {
  const recipe::Recipe recipe = recipe_to_measure(options.paths, options.image_size);
  const recipe::Data& data = recipe.data;
  const auto dataset = open_training_set(recipe);
  const auto prefetch = static_cast<int>(data.prefetch);
  const int threads =
      resolve_threads(options.threads > 0 ? options.threads : static_cast<int>(data.threads));
  const LoaderSpeed one =
      loader_speed(data, dataset, options.seconds, {.threads = 1, .prefetch = prefetch});
  const LoaderSpeed all = threads == 1 ? one
                                       : loader_speed(data, dataset, options.seconds,
                                                      {.threads = threads, .prefetch = prefetch});
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
    result["loader"] = all.images_per_s();
    result["threads"] = threads;
    result["limit"] = slowest.first;
    return print_json(result);
  }
  std::string text = "images/s, one thread:\n";
  for (const auto& [name, rate] : rates) text += fmt::format("  {:<8} {:10.0f}\n", name, rate);
  print(fmt::format("{}the loader, {}: {:.0f} images/s; most time goes to: {}\n", text,
                    core::counted(threads, "thread"), all.images_per_s(), slowest.first));
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
      ->add_option(
          "--seconds", options->seconds,
          "Duration of each measurement in seconds: one thread, then all threads. Default: 3.")
      ->check(CLI::Range(0.01, 3600.0));
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_bench(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
