#include "app/data/dedup_command.h"

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

#include "app/data/copy_samples.h"
#include "app/data/in_order.h"
#include "app/data/near_hash.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/shard_files.h"
#include "app/data/shard_writer.h"
#include "lib/core/error.h"
#include "lib/data/classes_file.h"
#include "lib/data/decode.h"
#include "lib/format/tar.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kShownSets = 20;

struct DedupOptions {
  std::vector<std::string> paths;
  ShardOptions shards;
  int near = -1, threads = 0;
  bool drop_near = false, as_json = false;
};

using Sets = std::vector<std::vector<std::size_t>>;  // of numbers of samples

struct Duplicates {
  Sets exact;
  Sets near;  // their first samples of exact sets only
};

// Hashes an image's pixels; for one thread.
class PictureHasher {
 public:
  explicit PictureHasher(const std::vector<ShardFile>& shards) : shards_(shards) {}

  std::uint64_t hash(const FoundSample& sample) {
    const ShardFile& shard = shards_[sample.shard];
    try {
      decoder_.decode(shard.read(sample.group.image()->member), image_);
    } catch (const std::invalid_argument& error) {
      throw core::DataError(
          fmt::format("{}: {}", shard.path(), format::shown_name(sample.group.key)),
          fmt::format("the image is damaged: {}", error.what()),
          "scaletrain data check --repair lists such images, and they are left out here");
    }
    return difference_hash(image_, resizer_, small_);
  }

 private:
  const std::vector<ShardFile>& shards_;
  data::Decoder decoder_;
  data::Resizer resizer_;
  data::Image image_, small_;
};

Sets exact_sets(const std::vector<ContentHash>& hashes) {
  std::map<ContentHash, std::size_t> first;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto [found, is_new] = first.emplace(hashes[i], i);
    if (!is_new) pairs.emplace_back(found->second, i);
  }
  return joined_sets(hashes.size(), pairs);
}

// Everything but the first of each set.
std::vector<bool> all_but_first(const Sets& sets, std::size_t count) {
  std::vector<bool> repeated(count);
  for (const auto& set : sets) {
    for (std::size_t i = 1; i < set.size(); ++i) repeated[set[i]] = true;
  }
  return repeated;
}

Sets near_sets(const std::vector<ShardFile>& shards, const std::vector<FoundSample>& samples,
               const std::vector<bool>& repeated, int distance, int threads) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!repeated[i]) numbers.push_back(i);
  }
  std::vector<std::unique_ptr<PictureHasher>> hashers;
  hashers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) hashers.push_back(std::make_unique<PictureHasher>(shards));
  std::vector<std::uint64_t> hashes(numbers.size());
  observe::WorkProgress progress(STDERR_FILENO, "decoding",
                                 static_cast<std::int64_t>(numbers.size()));
  in_order<std::uint64_t>(
      static_cast<std::int64_t>(numbers.size()), threads,
      [&](std::int64_t i, int thread) {
        return hashers[static_cast<std::size_t>(thread)]->hash(
            samples[numbers[static_cast<std::size_t>(i)]]);
      },
      [&](std::int64_t i, std::uint64_t hash) {
        hashes[static_cast<std::size_t>(i)] = hash;
        progress.add(1);
      });
  Sets sets = joined_sets(numbers.size(), near_pairs(hashes, distance));
  for (auto& set : sets) {
    for (std::size_t& number : set) number = numbers[number];
  }
  return sets;
}

nlohmann::ordered_json to_json(const Sets& sets, const std::vector<ShardFile>& shards,
                               const std::vector<FoundSample>& samples) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& set : sets) {
    nlohmann::ordered_json members = nlohmann::ordered_json::array();
    for (const std::size_t i : set) {
      members.push_back({{"shard", shards[samples[i].shard].path()},
                         {"key", samples[i].group.key},
                         {"label", samples[i].label}});
    }
    list.push_back(std::move(members));
  }
  return list;
}

std::string to_text(const char* kind, const Sets& sets, const std::vector<ShardFile>& shards,
                    const std::vector<FoundSample>& samples) {
  std::string text;
  for (std::size_t k = 0; k < sets.size() && k < kShownSets; ++k) {
    text += fmt::format("{}:", kind);
    for (const std::size_t i : sets[k]) {
      text += fmt::format(" {}/{} ({})", shards[samples[i].shard].name(),
                          format::shown_name(samples[i].group.key), samples[i].label);
    }
    text += "\n";
  }
  if (sets.size() > kShownSets) {
    text += fmt::format("{}: {} sets more; --json lists all\n", kind, sets.size() - kShownSets);
  }
  return text;
}

// Sets whose samples do not have one label: at most one of them can be right.
std::int64_t conflicts(const Sets& sets, const std::vector<FoundSample>& samples) {
  return std::count_if(sets.begin(), sets.end(), [&](const auto& set) {
    return std::any_of(set.begin(), set.end(), [&](std::size_t i) {
      return samples[i].label != samples[set.front()].label;
    });
  });
}

void write_filtered(const DedupOptions& options, const std::vector<ShardFile>& shards,
                    const std::vector<FoundSample>& samples, const std::vector<bool>& dropped,
                    int threads) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!dropped[i]) kept.push_back(i);
  }
  ShardWriter writer(options.shards);
  copy_samples(shards, samples, kept, threads, [&](std::size_t) -> ShardWriter& { return writer; });
  writer.finish();
  const std::string folder = std::filesystem::path(shards[0].path()).parent_path().string();
  const std::vector<std::string> classes = data::read_classes(folder);
  if (!classes.empty()) data::write_classes(options.shards.folder, classes);
}

void run_dedup(const DedupOptions& options) {
  const std::vector<ShardFile> shards = open_all(resolve_shards(options.paths));
  const int threads = resolve_threads(options.threads);
  const std::vector<FoundSample> samples = find_samples(shards, threads);
  Duplicates found;
  found.exact = exact_sets(content_hashes(shards, samples, threads));
  std::vector<bool> dropped = all_but_first(found.exact, samples.size());
  if (options.near >= 0) {
    found.near = near_sets(shards, samples, dropped, options.near, threads);
    if (options.drop_near) {
      const std::vector<bool> near = all_but_first(found.near, samples.size());
      for (std::size_t i = 0; i < near.size(); ++i) dropped[i] = dropped[i] || near[i];
    }
  }
  const auto repeats = std::count(dropped.begin(), dropped.end(), true);
  if (!options.shards.folder.empty()) write_filtered(options, shards, samples, dropped, threads);
  const std::int64_t wrong = conflicts(found.exact, samples) + conflicts(found.near, samples);
  if (options.as_json) {
    print_json({{"samples", samples.size()},
                {"exact", to_json(found.exact, shards, samples)},
                {"near", to_json(found.near, shards, samples)},
                {"label_conflicts", wrong},
                {"dropped", options.shards.folder.empty() ? 0 : repeats}});
    return;
  }
  print(to_text("equal", found.exact, shards, samples));
  print(to_text("alike", found.near, shards, samples));
  print(
      fmt::format("{} samples: {} sets of equal images, {} of images alike, {} with different "
                  "labels; {} samples {}\n",
                  samples.size(), found.exact.size(), found.near.size(), wrong, repeats,
                  options.shards.folder.empty() ? "could be left out" : "left out"));
}

}  // namespace

void add_dedup_command(CLI::App& app, int& exit_status) {
  constexpr int kMostDistance = 7;
  const auto options = std::make_shared<DedupOptions>();
  CLI::App* const command =
      app.add_subcommand("dedup", "find images that are there more than once, and leave them out");
  add_shards_argument(*command, options->paths);
  command
      ->add_option(
          "--near", options->near,
          "also find images that look alike: whose 64-bit hashes differ in so many bits; 3 "
          "is for copies of other size or quality")
      ->check(CLI::Range(0, kMostDistance));
  command->add_option("--out", options->shards.folder,
                      "write shards here that keep the first of equal images");
  command->add_flag("--drop-near", options->drop_near, "keep only the first of images alike too");
  add_shard_flags(*command, options->shards);
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_dedup(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
