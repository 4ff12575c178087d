#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/in_order.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/set_classes.h"
#include "app/data/files/shard_writer.h"
#include "app/data/shapes.h"
#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/image/encode.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

struct SynthOptions {
  ShardOptions shards;
  std::int64_t samples = 1000, classes = 10;
  std::string size = "64", encoding = "jpeg:90";
  std::uint64_t seed = 0;
  int threads = 0;
  bool distinct = false;
  bool as_json = false;
};

struct Size {
  std::int64_t width = 0, height = 0;
};

// "64" or "500x375".
Size parse_size(const std::string& text) {
  constexpr std::int64_t kMaxSide = 16384;
  Size size;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, size.width);
  size.height = size.width;
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == 'x') {
    parsed = std::from_chars(parsed.ptr + 1, end, size.height);
  }
  const auto fits = [](std::int64_t side) { return side >= 1 && side <= kMaxSide; };
  if (parsed.ec != std::errc() || parsed.ptr != end || !fits(size.width) || !fits(size.height)) {
    throw core::UsageError("--size", fmt::format("\"{}\" is not a size", text),
                           fmt::format("write 64 or 500x375, at most {} a side", kMaxSide));
  }
  return size;
}

// The classes of the set by number, as labels of draw_shapes().
std::vector<std::int64_t> labels_of(const SynthOptions& options) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < options.classes; ++i) {
    labels.push_back(options.distinct ? distinct_label(i) : i);
  }
  return labels;
}

std::vector<std::string> names_of(const std::vector<std::int64_t>& labels) {
  const std::vector<std::string> all =
      shape_classes(*std::max_element(labels.begin(), labels.end()) + 1);
  std::vector<std::string> names;
  for (const std::int64_t label : labels) names.push_back(all[static_cast<std::size_t>(label)]);
  return names;
}

void run_synth(const SynthOptions& options) {
  const Size size = parse_size(options.size);
  const data::Encoding encoding = data::parse_encoding(options.encoding, "--encoding");
  const std::vector<std::int64_t> labels = labels_of(options);
  const std::vector<std::string> classes = names_of(labels);
  const storage::Stores stores;
  check_classes(stores, options.shards.folder, classes);
  const int threads = resolve_threads(options.threads);
  std::vector<data::Image> images(static_cast<std::size_t>(threads));
  for (data::Image& image : images) image.reshape(size.width, size.height);

  ShardWriter writer(stores, options.shards);
  writer.claim_classes(classes);
  observe::WorkProgress progress(STDERR_FILENO, "drawing", options.samples);
  in_order<std::string>(
      options.samples, threads,
      [&](std::int64_t i, int thread) {
        data::Image& image = images[static_cast<std::size_t>(thread)];
        const std::int64_t label = labels[static_cast<std::size_t>(i % options.classes)];
        draw_shapes(options.seed, i, label, image);
        return data::encode(image, encoding);
      },
      [&](std::int64_t i, const std::string& file) {
        progress.add(1, static_cast<std::int64_t>(file.size()));
        writer.add(fmt::format("{}-{:08}", options.shards.name, i),
                   {{encoding.extension(), file}, {"cls", std::to_string(i % options.classes)}});
      });
  const std::size_t shards = writer.finish().size();
  if (options.as_json) {
    print_json({{"samples", options.samples}, {"classes", classes}, {"shards", shards}});
  } else {
    print(fmt::format("drew {} of {} into {} in {}\n", core::counted(options.samples, "sample"),
                      core::counted(options.classes, "class"), core::counted(shards, "shard"),
                      core::shown_path(options.shards.folder)));
  }
}

}  // namespace

void add_synth_command(CLI::App& app, int& exit_status) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  constexpr std::int64_t kMostClasses = 100'000;
  const auto options = std::make_shared<SynthOptions>();
  CLI::App* const command =
      app.add_subcommand("synth", "draw labelled shapes into shards, for trials without data");
  command
      ->add_option("OUT", options->shards.folder, "Folder for the shards, or s3://BUCKET/FOLDER.")
      ->required();
  add_shard_flags(*command, options->shards);
  command->add_option("--samples", options->samples, "Number of samples.")
      ->check(CLI::Range(std::int64_t{1}, kMost))
      ->capture_default_str();
  command->add_option("--classes", options->classes, "Number of classes.")
      ->check(CLI::Range(std::int64_t{1}, kMostClasses))
      ->capture_default_str();
  command->add_flag("--distinct", options->distinct,
                    "Make neighboring classes differ in both shape and color.");
  command
      ->add_option("--size", options->size,
                   "Image size in pixels: 64, or 500x375 for width and height.")
      ->capture_default_str();
  command->add_option("--encoding", options->encoding, "Image encoding: jpeg:QUALITY, png or raw.")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Random seed of images and labels.")
      ->capture_default_str();
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_synth(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
