#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/data/data_stats.h"
#include "app/data/files/commands.h"
#include "app/data/files/image_kind.h"
#include "app/data/files/in_order.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/shard_set.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/image/decode.h"
#include "lib/data/image/encode.h"
#include "lib/data/image/resize.h"
#include "lib/data/set/classes_file.h"
#include "lib/format/tar/tar.h"
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
  bool overwrite = false, as_json = false;
};

// The contact sheet: the first samples of every class, as many of each, offered in their order.
class ContactSheet {
 public:
  // True if the sheet takes one more picture of `label`. Takes too many while classes are still to
  // come.
  bool wants(std::uint32_t label) {
    const bool is_late = taken_.size() >= kMostThumbnails;
    std::size_t& taken = taken_.try_emplace(label, is_late ? kMostThumbnails : 0).first->second;
    return taken++ < each();
  }

  void add(std::uint32_t label, Thumbnail thumbnail) {
    thumbnails_.emplace_back(label, std::move(thumbnail));
  }

  Sheet finish() {
    std::map<std::uint32_t, std::size_t> shown;
    Sheet sheet{.thumbnails = {}, .of_each = each(), .has_all = taken_.size() <= kMostThumbnails};
    for (auto& [label, thumbnail] : thumbnails_) {
      if (shown[label]++ < each()) sheet.thumbnails.push_back(std::move(thumbnail));
    }
    return sheet;
  }

 private:
  std::size_t each() const {
    return std::max<std::size_t>(1, kMostThumbnails / std::max<std::size_t>(1, taken_.size()));
  }

  std::map<std::uint32_t, std::size_t> taken_;  // thumbnails of each label
  std::vector<std::pair<std::uint32_t, Thumbnail>> thumbnails_;
};

// Examines samples; for one thread.
class StatsWorker {
 public:
  explicit StatsWorker(const std::vector<std::string>& classes) : classes_(classes) {}

  std::optional<Thumbnail> look(const ShardFile& shard, const FoundSample& sample,
                                bool with_thumbnail) {
    const format::TarMember& member = sample.group.image()->member;
    const std::string file = shard.read(member);
    try {
      decoder_.decode(file, image_);
    } catch (const std::invalid_argument& error) {
      throw core::DataError(
          fmt::format("{}: {}", shard.place(), format::shown_name(sample.group.key)),
          fmt::format("the image is damaged: {}", error.what()),
          "scaletrain data check lists all damaged samples");
    }
    stats_.add(sample.labels, image_kind(file), member.bytes, image_);
    if (!with_thumbnail) return std::nullopt;
    resizer_.resize(
        image_, data::fitted(image_.width, image_.height, kThumbnailSide, kThumbnailSide), small_);
    return Thumbnail{
        data::to_jpeg(small_, kThumbnailQuality),
        fmt::format("{}: {}", class_names(sample.labels), format::shown_name(sample.group.key))};
  }

  const DataStats& stats() const { return stats_; }

 private:
  std::string class_names(const std::vector<std::int64_t>& labels) const {
    std::vector<std::string> names;
    names.reserve(labels.size());
    for (const std::int64_t label : labels) names.push_back(data::class_name(classes_, label));
    return fmt::to_string(fmt::join(names, ", "));
  }

  const std::vector<std::string>& classes_;
  data::Decoder decoder_;
  data::Resizer resizer_;
  data::Image image_, small_;
  DataStats stats_;
};

// Decodes every sample.
DataStats gather(const ShardSet& set, const std::vector<std::string>& classes, int threads,
                 ContactSheet* sheet) {
  std::vector<std::unique_ptr<StatsWorker>> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.push_back(std::make_unique<StatsWorker>(classes));
  observe::WorkProgress progress(STDERR_FILENO, "decoding shards",
                                 static_cast<std::int64_t>(set.size()));
  const auto look_at = [&](const ShardFile& shard, const std::vector<FoundSample>& batch) {
    std::vector<bool> chosen(batch.size());
    for (std::size_t i = 0; i < batch.size() && sheet != nullptr; ++i) {
      chosen[i] = sheet->wants(batch[i].label);
    }
    in_order<std::optional<Thumbnail>>(
        std::ssize(batch), threads,
        [&](std::int64_t i, int thread) {
          const auto number = static_cast<std::size_t>(i);
          return workers[static_cast<std::size_t>(thread)]->look(shard, batch[number],
                                                                 chosen[number]);
        },
        [&](std::int64_t i, std::optional<Thumbnail> thumbnail) {
          if (thumbnail)
            sheet->add(batch[static_cast<std::size_t>(i)].label, std::move(*thumbnail));
        });
    progress.add(0, bytes_of(batch));
  };
  for_each_batch(set, look_at, [&] { progress.add(1); });
  DataStats stats;
  for (const auto& worker : workers) stats.merge(worker->stats());
  return stats;
}

nlohmann::ordered_json to_json(const DataStats& stats, const std::vector<std::string>& classes) {
  nlohmann::ordered_json by_class = nlohmann::ordered_json::array();
  for (const auto& [label, count] : stats.by_class) {
    by_class.push_back(
        {{"label", label}, {"name", data::class_name(classes, label)}, {"samples", count}});
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
  for (const auto& [name, count] : stats.by_format) {
    formats += fmt::format(" {} {}", count, core::printable(name));
  }
  print(
      fmt::format("samples    {}\nclasses    {}, with {} to {}\nimages    {}, {:.1f} MB\n"
                  "width      {} to {}\nheight     {} to {}\n"
                  "mean       {:.4f} {:.4f} {:.4f}  (red, green, blue in 0..1)\n"
                  "deviation  {:.4f} {:.4f} {:.4f}\n",
                  stats.samples, stats.by_class.size(), fewest, core::counted(most, "sample"),
                  formats, static_cast<double>(stats.image_bytes) / 1e6, stats.width.least,
                  stats.width.most, stats.height.least, stats.height.most, mean[0], mean[1],
                  mean[2], deviation[0], deviation[1], deviation[2]));
}

void run_stats(const StatsOptions& options) {
  const storage::Stores stores;
  const std::vector<std::string> paths = resolve_shards(stores, options.paths);
  if (!options.html.empty()) {
    refuse_existing(storage::file_storage(), options.html, options.overwrite);
  }
  const std::vector<std::string> classes = data::shared_classes(paths, stores);
  ContactSheet sheet;
  const DataStats stats = gather(ShardSet(stores, paths), classes, resolve_threads(options.threads),
                                 options.html.empty() ? nullptr : &sheet);
  if (!options.html.empty()) {
    core::write_durably(
        core::system_disk(), options.html,
        stats_page(core::shown_path(options.paths.front()), stats, classes, sheet.finish()));
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
  command->add_option("--html", options->html,
                      "Also write an HTML page with a contact sheet to this file.");
  add_overwrite_flag(*command, options->overwrite);
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_stats(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
