#include "app/data/stats_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/data/data_stats.h"
#include "app/data/image_kind.h"
#include "app/data/in_order.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/shard_files.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/data/classes_file.h"
#include "lib/data/decode.h"
#include "lib/data/encode.h"
#include "lib/data/resize.h"
#include "lib/format/tar.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kMostThumbnails = 96;
constexpr std::int64_t kThumbnailSide = 96;
constexpr int kThumbnailQuality = 80;

struct StatsOptions {
  std::vector<std::string> paths;
  std::string html;
  int threads = 0;
  bool as_json = false;
};

// The first samples of every class, as many of each.
std::vector<bool> choose_thumbnails(const std::vector<FoundSample>& samples) {
  std::map<std::int64_t, std::size_t> taken;
  for (const FoundSample& sample : samples) taken.emplace(sample.label, 0);
  const std::size_t each =
      std::max<std::size_t>(1, kMostThumbnails / std::max<std::size_t>(1, taken.size()));
  std::vector<bool> chosen(samples.size());
  std::size_t all = 0;
  for (std::size_t i = 0; i < samples.size() && all < kMostThumbnails; ++i) {
    if (taken[samples[i].label]++ >= each) continue;
    chosen[i] = true;
    ++all;
  }
  return chosen;
}

struct Gathered {
  DataStats stats;
  std::vector<std::pair<std::size_t, Thumbnail>> thumbnails;  // with the sample's number
};

// Looks at samples; for one thread.
class StatsWorker {
 public:
  StatsWorker(const std::vector<ShardFile>& shards, const std::vector<std::string>& classes)
      : shards_(shards), classes_(classes) {}

  void look(const FoundSample& sample, std::size_t number, bool with_thumbnail) {
    const ShardFile& shard = shards_[sample.shard];
    const format::TarMember& member = sample.group.image()->member;
    const std::string file = shard.read(member);
    try {
      decoder_.decode(file, image_);
    } catch (const std::invalid_argument& error) {
      throw core::DataError(
          fmt::format("{}: {}", shard.path(), format::shown_name(sample.group.key)),
          fmt::format("the image is damaged: {}", error.what()),
          "scaletrain data check tells all that is wrong");
    }
    gathered_.stats.add(sample.label, image_kind(file), member.bytes, image_);
    if (!with_thumbnail) return;
    resizer_.resize(
        image_, data::fitted(image_.width, image_.height, kThumbnailSide, kThumbnailSide), small_);
    gathered_.thumbnails.emplace_back(
        number, Thumbnail{data::to_jpeg(small_, kThumbnailQuality),
                          fmt::format("{}: {}", class_name(classes_, sample.label),
                                      format::shown_name(sample.group.key))});
  }

  Gathered& gathered() { return gathered_; }

 private:
  const std::vector<ShardFile>& shards_;
  const std::vector<std::string>& classes_;
  data::Decoder decoder_;
  data::Resizer resizer_;
  data::Image image_, small_;
  Gathered gathered_;
};

nlohmann::ordered_json to_json(const DataStats& stats, const std::vector<std::string>& classes) {
  nlohmann::ordered_json by_class = nlohmann::ordered_json::array();
  for (const auto& [label, count] : stats.by_class) {
    by_class.push_back(
        {{"label", label}, {"name", class_name(classes, label)}, {"samples", count}});
  }
  const auto extent = [&](const Extent& of) {
    return nlohmann::ordered_json{
        {"least", of.least},
        {"mean", static_cast<double>(of.sum) /
                     static_cast<double>(std::max<std::int64_t>(1, stats.samples))},
        {"most", of.most}};
  };
  return {{"samples", stats.samples},     {"image_bytes", stats.image_bytes},
          {"classes", by_class},          {"formats", stats.by_format},
          {"width", extent(stats.width)}, {"height", extent(stats.height)},
          {"mean", stats.mean()},         {"deviation", stats.deviation()}};
}

void print_text(const DataStats& stats) {
  const auto mean = stats.mean(), deviation = stats.deviation();
  std::int64_t fewest = stats.samples, most = 0;
  for (const auto& [label, count] : stats.by_class) {
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  std::string formats;
  for (const auto& [name, count] : stats.by_format) formats += fmt::format(" {} {}", count, name);
  print(
      fmt::format("samples    {}\nclasses    {}, with {} to {} samples\nimages    {}, {:.1f} MB\n"
                  "width      {} to {}\nheight     {} to {}\n"
                  "mean       {:.4f} {:.4f} {:.4f}  (red, green, blue in 0..1)\n"
                  "deviation  {:.4f} {:.4f} {:.4f}\n",
                  stats.samples, stats.by_class.size(), fewest, most, formats,
                  static_cast<double>(stats.image_bytes) / 1e6, stats.width.least, stats.width.most,
                  stats.height.least, stats.height.most, mean[0], mean[1], mean[2], deviation[0],
                  deviation[1], deviation[2]));
}

void run_stats(const StatsOptions& options) {
  const std::vector<std::string> paths = resolve_shards(options.paths);
  const std::string folder = std::filesystem::path(paths.at(0)).parent_path().string();
  const std::vector<std::string> classes = data::read_classes(folder);
  const std::vector<ShardFile> shards = open_all(paths);
  const int threads = resolve_threads(options.threads);
  const std::vector<FoundSample> samples = find_samples(shards, threads);
  const std::vector<bool> chosen = choose_thumbnails(samples);

  std::vector<std::unique_ptr<StatsWorker>> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers.push_back(std::make_unique<StatsWorker>(shards, classes));
  }
  observe::WorkProgress progress(STDERR_FILENO, "decoding",
                                 static_cast<std::int64_t>(samples.size()));
  in_order<bool>(
      static_cast<std::int64_t>(samples.size()), threads,
      [&](std::int64_t i, int thread) {
        const auto number = static_cast<std::size_t>(i);
        workers[static_cast<std::size_t>(thread)]->look(samples[number], number,
                                                        !options.html.empty() && chosen[number]);
        return true;
      },
      [&](std::int64_t, bool) { progress.add(1); });

  DataStats stats;
  std::vector<std::pair<std::size_t, Thumbnail>> thumbnails;
  for (const auto& worker : workers) {
    stats.merge(worker->gathered().stats);
    for (auto& thumbnail : worker->gathered().thumbnails) {
      thumbnails.push_back(std::move(thumbnail));
    }
  }
  if (!options.html.empty()) {
    std::sort(thumbnails.begin(), thumbnails.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Thumbnail> sheet;
    sheet.reserve(thumbnails.size());
    for (auto& thumbnail : thumbnails) sheet.push_back(std::move(thumbnail.second));
    core::write_durably(core::system_disk(), options.html,
                        stats_page(options.paths.front(), stats, classes, sheet));
  }
  if (options.as_json) {
    print_json(to_json(stats, classes));
  } else {
    print_text(stats);
  }
}

}  // namespace

void add_stats_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<StatsOptions>();
  CLI::App* const command =
      app.add_subcommand("stats", "count classes, formats and sizes, and measure the pixels");
  add_shards_argument(*command, options->paths);
  command->add_option("--html", options->html, "also write a page with a contact sheet here");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_stats(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
