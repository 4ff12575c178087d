#include "app/data/loader_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/text/text.h"

namespace scaletrain::app {
namespace {

constexpr double kMargin = 1.05;         // the loader should be that much faster than training
constexpr double kCropMargin = 1.15;     // stored side over trained side, for random crops
constexpr double kMuchLarger = 1.5;      // pixels over the needed ones, from which packing pays
constexpr double kSlowReadS = 0.002;     // a read that takes longer waits for a disk or a store
constexpr double kSmallShard = 16e6;     // bytes
constexpr double kUsualShard = 100e6;    // bytes; 100 MB to 1 GB is usual for WebDataset
constexpr double kLargeShard = 2e9;      // bytes
constexpr double kMostCopyShare = 0.05;  // of a run's time

std::string megabytes(double bytes) { return fmt::format("{:.3g} MB", bytes / 1e6); }

double thread_s(const LoaderFacts& facts) {
  return facts.read_s + facts.decode_s + facts.augment_s;
}

std::string slowest_stage(const LoaderFacts& facts) {
  const std::array<std::pair<double, const char*>, 3> stages{
      {{facts.read_s, "read"}, {facts.decode_s, "decode"}, {facts.augment_s, "augment"}}};
  return std::max_element(stages.begin(), stages.end())->second;
}

void add_threads(const LoaderFacts& facts, std::vector<std::string>& changes) {
  if (facts.threads_searched || facts.threads == 0 || facts.threads == facts.best.threads) return;
  changes.push_back(fmt::format(
      R"(set data.threads to {} (the recipe has {}), or to "auto", which searches while training runs)",
      facts.best.threads, facts.threads));
}

// Reads wait without using a core, so more threads help as long as the store answers.
void add_reading(const LoaderFacts& facts, std::vector<std::string>& changes) {
  if (facts.is_remote && !facts.has_cache) {
    changes.push_back(
        "set data.cache to a folder on a local disk, so that each shard is fetched once");
  }
  if (!facts.is_streamed && facts.shard_bytes > 0) {
    changes.push_back(R"(set data.order to "streamed": shards are then read from begin to end)");
  }
  if (facts.threads != 0 && !facts.threads_searched) {
    changes.push_back(R"(set data.threads to "auto": threads that wait for a read need no core)");
  }
  if (!facts.is_remote) changes.push_back("copy the data to a local disk");
}

void add_decoding(const LoaderFacts& facts, std::vector<std::string>& changes) {
  const double side = std::ceil(kCropMargin * static_cast<double>(facts.image_size));
  const double ratio = facts.mean_pixels / (side * side);
  if (ratio >= kMuchLarger) {
    changes.push_back(
        fmt::format("run `scaletrain data pack --resize {:.0f}` once: images have {:.2g} million "
                    "pixels on average, {:.1f} times as many as training at {} needs",
                    side, facts.mean_pixels / 1e6, ratio, facts.image_size));
  } else if (facts.raw_share < 0.5) {
    changes.push_back(
        "run `scaletrain data pack --reencode raw` once: raw pixels need no decoding, and several "
        "times the space on the disk");
  }
}

void add_shards(const LoaderFacts& facts, std::vector<std::string>& changes) {
  if (facts.shard_bytes <= 0) return;
  const double total = facts.shard_bytes * static_cast<double>(facts.shards);
  if (facts.is_streamed && facts.shards < facts.ranks) {
    changes.push_back(fmt::format("pack at least {} shards, one for each rank; there {} {}",
                                  facts.ranks, facts.shards == 1 ? "is" : "are", facts.shards));
  } else if (facts.shard_bytes > kLargeShard) {
    changes.push_back(fmt::format("pack smaller shards, of {} to 1 GB; they have {} on average",
                                  megabytes(kUsualShard), megabytes(facts.shard_bytes)));
  } else if (facts.is_remote && facts.shard_bytes < kSmallShard && total > kUsualShard) {
    changes.push_back(fmt::format(
        "pack larger shards, of {} and more: each has a request of its own, and {} on average",
        megabytes(kUsualShard), megabytes(facts.shard_bytes)));
  }
}

}  // namespace

LoaderAdvice advise(const LoaderFacts& facts) {
  LoaderAdvice advice;
  if (facts.needed_per_s && facts.images_per_s >= kMargin * *facts.needed_per_s) {
    advice.limit = "training";
    add_threads(facts, advice.changes);
  } else {
    advice.limit = slowest_stage(facts);
    add_threads(facts, advice.changes);
    if (advice.limit == "read" && facts.read_s > kSlowReadS) add_reading(facts, advice.changes);
    if (advice.limit == "decode") add_decoding(facts, advice.changes);
    if (advice.limit == "augment") {
      advice.changes.emplace_back(
          "use fewer or cheaper transforms (blur and colours cost most); `mix` runs on the device");
    }
    advice.changes.emplace_back("give each rank more CPU cores");
  }
  if (facts.copy_share.value_or(0) > kMostCopyShare) {
    advice.changes.push_back(
        fmt::format("copies to the device took {:.0f} % of the run's time: "
                    "lower data.image_size or leave out mixup and cutmix",
                    100 * *facts.copy_share));
  }
  add_shards(facts, advice.changes);
  return advice;
}

std::string advice_text(const LoaderFacts& facts, const LoaderAdvice& advice) {
  std::string text = fmt::format(
      "loader    {:.0f} images/s with {} and data.prefetch {}, the best that was found on {}\n",
      facts.images_per_s, core::counted(facts.best.threads, "thread"), facts.best.prefetch,
      core::counted(facts.cores, "core"));
  if (facts.needed_per_s) {
    text += fmt::format("training  {:.0f} images/s for each rank\n", *facts.needed_per_s);
  }
  const double total_s = std::max(thread_s(facts), 1e-12);
  const std::array<std::pair<const char*, double>, 3> stages{
      {{"read", facts.read_s}, {"decode", facts.decode_s}, {"augment", facts.augment_s}}};
  for (const auto& [name, seconds] : stages) {
    text += fmt::format("{:<9} {:.3f} ms an image, {:.0f} % of a thread's time\n", name,
                        1000 * seconds, 100 * seconds / total_s);
  }
  text += fmt::format("limit     {}\n", advice.limit);
  for (std::size_t i = 0; i < advice.changes.size(); ++i) {
    text += fmt::format("{:<9} {}. {}\n", i == 0 ? "change" : "", i + 1, advice.changes[i]);
  }
  if (advice.changes.empty()) text += "change    nothing: training does not wait for data\n";
  return text;
}

nlohmann::ordered_json advice_json(const LoaderFacts& facts, const LoaderAdvice& advice) {
  nlohmann::ordered_json json = {
      {"images_per_s", facts.images_per_s},
      {"threads", facts.best.threads},
      {"prefetch", facts.best.prefetch},
      {"cores", facts.cores},
      {"seconds_an_image",
       {{"read", facts.read_s}, {"decode", facts.decode_s}, {"augment", facts.augment_s}}}};
  if (facts.needed_per_s) json["needed_images_per_s"] = *facts.needed_per_s;
  json["limit"] = advice.limit;
  json["changes"] = advice.changes;
  return json;
}

}  // namespace scaletrain::app
