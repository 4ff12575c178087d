#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/copy_samples.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/sample_table.h"
#include "app/data/files/shard_set.h"
#include "app/data/files/shard_writer.h"
#include "app/data/near_hash.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/image/decode.h"
#include "lib/data/set/classes_file.h"
#include "lib/data/set/near_sets.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {
namespace {

constexpr std::ptrdiff_t kShownSets = 20;
constexpr std::size_t kShownSamples = 20;  // samples of each set

struct DedupOptions {
  std::vector<std::string> paths;
  ShardOptions shards;
  int near = -1, threads = 0;
  bool drop_near = false, as_json = false;
};

struct Duplicates {
  SampleSets exact;
  SampleSets near;  // their first samples of exact sets only
};

// Hashes an image's pixels; for one thread.
class PictureHasher {
 public:
  std::uint64_t hash(const ShardFile& shard, const FoundSample& sample) {
    try {
      decoder_.decode(shard.read(sample.group.image()->member), image_);
    } catch (const std::invalid_argument& error) {
      throw core::DataError(
          fmt::format("{}: {}", shard.place(), format::shown_name(sample.group.key)),
          fmt::format("the image is damaged: {}", error.what()),
          "scaletrain data check --repair excludes damaged images");
    }
    return difference_hash(image_, resizer_, small_);
  }

 private:
  data::Decoder decoder_;
  data::Resizer resizer_;
  data::Image image_, small_;
};

// Marks everything but the first of each set.
void mark_repeated(const SampleSets& sets, std::vector<bool>& repeated) {
  for (const auto& set : sets) {
    for (std::size_t i = 1; i < set.size(); ++i) repeated[set[i]] = true;
  }
}

SampleSets find_near(const ShardSet& set, const std::vector<bool>& repeated, int distance,
                     int threads) {
  std::vector<PictureHasher> hashers(static_cast<std::size_t>(threads));
  std::vector<std::uint32_t> numbers;
  std::vector<std::uint64_t> hashes;
  for_each_sample<std::uint64_t>(
      set, "decoding shards", threads,
      [&](const ShardFile& shard, const FoundSample& sample, int thread) {
        return repeated[sample.number]
                   ? 0
                   : hashers[static_cast<std::size_t>(thread)].hash(shard, sample);
      },
      [&](const FoundSample& sample, std::uint64_t hash) {
        if (repeated[sample.number]) return;
        numbers.push_back(sample.number);
        hashes.push_back(hash);
      });
  SampleSets sets = data::near_sets(hashes, distance).sets;
  for (auto& alike : sets) {
    for (std::uint32_t& number : alike) number = numbers[number];
  }
  return sets;
}

// Report of the duplicate sets, as JSON or text.
class Report {
 public:
  Report(const ShardSet& set, const std::vector<SamplePlace>& places)
      : set_(set), places_(places) {}

  nlohmann::ordered_json json(const SampleSets& sets) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const std::vector<std::string> keys = keys_of(sets);
    auto key = keys.begin();
    for (const auto& equal : sets) {
      nlohmann::ordered_json members = nlohmann::ordered_json::array();
      for (const std::uint32_t i : equal) {
        members.push_back({{"shard", core::shown_path(set_.path(places_[i].shard))},
                           {"key", *key++},
                           {"label", shown_label(places_[i])}});
      }
      list.push_back(std::move(members));
    }
    return list;
  }

  std::string text(const char* kind, const SampleSets& sets) const {
    SampleSets shown(sets.begin(), sets.begin() + std::min(std::ssize(sets), kShownSets));
    for (auto& equal : shown) equal.resize(std::min(equal.size(), kShownSamples));
    const std::vector<std::string> keys = keys_of(shown);
    auto key = keys.begin();
    std::string text;
    for (std::size_t k = 0; k < shown.size(); ++k) {
      text += fmt::format("{}:", kind);
      for (const std::uint32_t i : shown[k]) {
        text += fmt::format(" {}/{} ({})",
                            core::printable(core::base_name(set_.path(places_[i].shard))),
                            format::shown_name(*key++), shown_label(places_[i]).dump());
      }
      const std::size_t more = sets[k].size() - shown[k].size();
      text += more > 0 ? fmt::format(" and {} more\n", more) : "\n";
    }
    if (sets.size() > shown.size()) {
      text += fmt::format("{}: {} sets more; --json lists all\n", kind, sets.size() - shown.size());
    }
    return text;
  }

  // Sets whose samples do not have one label: at most one of them can be right.
  std::int64_t conflicts(const SampleSets& sets) const {
    return std::count_if(sets.begin(), sets.end(), [&](const auto& equal) {
      return std::any_of(equal.begin(), equal.end(), [&](std::uint32_t i) {
        return places_[i].label != places_[equal.front()].label;
      });
    });
  }

 private:
  // A class number; null for a list of classes.
  static nlohmann::ordered_json shown_label(const SamplePlace& place) {
    return place.label >> 31 != 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(place.label);
  }

  // Keys of the samples of all sets, one set after the other.
  std::vector<std::string> keys_of(const SampleSets& sets) const {
    std::vector<SamplePlace> places;
    for (const auto& equal : sets) {
      for (const std::uint32_t i : equal) places.push_back(places_[i]);
    }
    return keys_at(set_, places);
  }

  const ShardSet& set_;
  const std::vector<SamplePlace>& places_;
};

void write_filtered(const DedupOptions& options, const ShardSet& set,
                    const std::vector<bool>& dropped, int threads) {
  ShardWriter writer(set.stores(), options.shards);
  writer.claim_classes(data::shared_classes(set.paths(), set.stores()));
  copy_samples(set, threads,
               [&](std::uint32_t number) { return dropped[number] ? nullptr : &writer; });
  writer.finish();
}

void run_dedup(const DedupOptions& options) {
  const storage::Stores stores;
  const std::vector<std::string> paths = resolve_shards(stores, options.paths);
  refuse_replaced_inputs(options.shards, paths);
  const ShardSet set(stores, paths);
  const int threads = resolve_threads(options.threads);
  HashedSamples samples = hash_samples(set, threads);
  std::vector<bool> dropped(samples.places.size());
  Duplicates found;
  found.exact = equal_sets(std::exchange(samples.hashes, {}));  // 16 bytes a sample less
  mark_repeated(found.exact, dropped);
  if (options.near >= 0) found.near = find_near(set, dropped, options.near, threads);
  if (options.drop_near) mark_repeated(found.near, dropped);
  const auto repeats = std::count(dropped.begin(), dropped.end(), true);
  if (!options.shards.folder.empty()) write_filtered(options, set, dropped, threads);
  const Report report(set, samples.places);
  const std::int64_t wrong = report.conflicts(found.exact) + report.conflicts(found.near);
  if (options.as_json) {
    print_json({{"samples", dropped.size()},
                {"exact", report.json(found.exact)},
                {"near", report.json(found.near)},
                {"label_conflicts", wrong},
                {"dropped", options.shards.folder.empty() ? 0 : repeats}});
    return;
  }
  print(report.text("equal", found.exact));
  print(report.text("alike", found.near));
  print(fmt::format(
      "{}: {} of equal images, {} of images alike, {} with different "
      "labels; {} {}\n",
      core::counted(std::ssize(dropped), "sample"), core::counted(std::ssize(found.exact), "set"),
      found.near.size(), wrong, core::counted(repeats, "sample"),
      options.shards.folder.empty() ? "could be left out" : "left out"));
}

}  // namespace

void add_dedup_command(CLI::App& app, int& exit_status) {
  constexpr int kMostDistance = 7;
  const auto options = std::make_shared<DedupOptions>();
  CLI::App* const command = app.add_subcommand(
      "dedup", "find duplicate and near-duplicate images, and write shards without them");
  add_shards_argument(*command, options->paths);
  CLI::Option* const near =
      command
          ->add_option("--near", options->near,
                       "Also find near duplicates: images whose 64-bit perceptual hashes differ in "
                       "at most this many bits. 3 finds copies of another size or quality.")
          ->check(CLI::Range(0, kMostDistance));
  command->add_option("--out", options->shards.folder,
                      "Folder for new shards that keep one of each set of equal images.");
  command
      ->add_flag("--drop-near", options->drop_near, "Keep one of each set of near duplicates too.")
      ->needs(near);
  add_shard_flags(*command, options->shards);
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_dedup(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
