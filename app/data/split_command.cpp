#include "app/data/split_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "app/data/copy_samples.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/shard_files.h"
#include "app/data/shard_writer.h"
#include "app/data/split_plan.h"
#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/core/log.h"
#include "lib/data/classes_file.h"
#include "lib/format/tar.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kParts{"train", "val", "test"};

struct SplitOptions {
  std::vector<std::string> paths;
  ShardOptions shards;
  double val = 0.1, test = 0;
  std::string group_by;
  std::uint64_t seed = 0;
  int threads = 0;
  bool check = false, as_json = false;
};

// Samples of one group: the part of the key that the expression matches (its first parenthesis,
// where it has one); without an expression, or a match, images of the same bytes.
std::vector<SplitSample> group_samples(const std::vector<FoundSample>& samples,
                                       const std::vector<ContentHash>& hashes,
                                       const std::string& expression) {
  std::vector<SplitSample> result;
  result.reserve(samples.size());
  try {
    const std::regex pattern(expression);
    std::smatch match;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::uint64_t group = hashes[i].high;
      if (!expression.empty() && std::regex_search(samples[i].group.key, match, pattern)) {
        group = core::xxh3_64(match[match.size() > 1 ? 1 : 0].str());
      }
      result.push_back({samples[i].label, group});
    }
  } catch (const std::regex_error& error) {
    throw core::UsageError("--group-by", fmt::format("\"{}\": {}", expression, error.what()),
                           "write a regular expression, such as ^[^/]*/([^_]*)");
  }
  return result;
}

// An image that is in more than one of the parts.
struct Leak {
  std::size_t first = 0, second = 0;  // numbers of samples
};

std::vector<Leak> find_leaks(const std::vector<ContentHash>& hashes,
                             const std::vector<std::size_t>& parts) {
  std::map<ContentHash, std::size_t> seen;
  std::vector<Leak> leaks;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto [found, is_new] = seen.emplace(hashes[i], i);
    if (!is_new && parts[found->second] != parts[i]) leaks.push_back({found->second, i});
  }
  return leaks;
}

std::string place_of(const std::vector<ShardFile>& shards, const FoundSample& sample) {
  return fmt::format("{}: {}", shards[sample.shard].path(), format::shown_name(sample.group.key));
}

// Each PATH is a part of its own: are there images in two of them?
bool run_leak_check(const SplitOptions& options) {
  std::vector<ShardFile> shards;
  std::vector<std::size_t> part_of_shard;
  for (std::size_t part = 0; part < options.paths.size(); ++part) {
    for (const std::string& path : resolve_shards({options.paths[part]})) {
      shards.emplace_back(path);
      part_of_shard.push_back(part);
    }
  }
  const int threads = resolve_threads(options.threads);
  const std::vector<FoundSample> samples = find_samples(shards, threads);
  std::vector<std::size_t> parts;
  parts.reserve(samples.size());
  for (const FoundSample& sample : samples) parts.push_back(part_of_shard[sample.shard]);
  const std::vector<Leak> leaks = find_leaks(content_hashes(shards, samples, threads), parts);
  if (options.as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Leak& leak : leaks) {
      list.push_back(
          {place_of(shards, samples[leak.first]), place_of(shards, samples[leak.second])});
    }
    print_json({{"samples", samples.size()}, {"leaks", list}});
  } else {
    for (const Leak& leak : leaks) {
      print(fmt::format("{} is also {}\n", place_of(shards, samples[leak.second]),
                        place_of(shards, samples[leak.first])));
    }
    print(fmt::format("{} samples in {} parts, {} images in more than one\n", samples.size(),
                      options.paths.size(), leaks.size()));
  }
  return leaks.empty();
}

void run_split(const SplitOptions& options) {
  if (options.val + options.test >= 1) {
    throw core::UsageError("split", "--val and --test leave nothing for training",
                           "their sum must be below 1");
  }
  if (options.shards.folder.empty()) {
    throw core::UsageError("split", "--out is missing", "name a folder for the new shards");
  }
  const std::vector<std::string> paths = resolve_shards(options.paths);
  const std::vector<ShardFile> shards = open_all(paths);
  const int threads = resolve_threads(options.threads);
  const std::vector<FoundSample> samples = find_samples(shards, threads);
  const std::vector<ContentHash> hashes = content_hashes(shards, samples, threads);
  const std::vector<std::size_t> parts =
      plan_split(group_samples(samples, hashes, options.group_by),
                 {1 - options.val - options.test, options.val, options.test}, options.seed);
  const std::vector<Leak> leaks = find_leaks(hashes, parts);
  if (!leaks.empty()) {
    core::warn("{} images are in more than one part, as --group-by asks; the first: {} and {}",
               leaks.size(), place_of(shards, samples[leaks[0].first]),
               place_of(shards, samples[leaks[0].second]));
  }

  std::vector<std::unique_ptr<ShardWriter>> writers;
  for (const char* const part : kParts) {
    ShardOptions of_part = options.shards;
    of_part.name = part;
    writers.push_back(std::make_unique<ShardWriter>(of_part));
  }
  std::vector<std::size_t> all(samples.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  copy_samples(shards, samples, all, threads,
               [&](std::size_t i) -> ShardWriter& { return *writers[parts[i]]; });

  const auto classes = data::read_classes(fs::path(paths.at(0)).parent_path().string());
  nlohmann::ordered_json report = nlohmann::ordered_json::object();
  std::string text;
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    const std::vector<WrittenShard>& written = writers[part]->finish();
    const auto count = std::count(parts.begin(), parts.end(), part);
    report[kParts[part]] = {{"samples", count}, {"shards", written.size()}};
    text += fmt::format("{}: {} samples in {} shards\n", kParts[part], count, written.size());
  }
  if (!classes.empty()) data::write_classes(options.shards.folder, classes);
  report["leaks"] = leaks.size();
  if (options.as_json) {
    print_json(report);
  } else {
    print(text);
  }
}

}  // namespace

void add_split_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SplitOptions>();
  CLI::App* const command = app.add_subcommand(
      "split", "divide shards into training, validation and test shards, each class alike");
  add_shards_argument(*command, options->paths);
  command->add_option("--out", options->shards.folder, "the folder of the new shards");
  command->add_option("--val", options->val, "the part for validation")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--test", options->test, "the part for the test")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--group-by", options->group_by,
                      "a regular expression: samples stay together whose keys are alike in what it "
                      "matches; images of the same bytes do so without");
  command->add_option("--seed", options->seed, "of the division")->capture_default_str();
  command->add_flag("--check", options->check,
                    "divide nothing: each PATH is a part; exit code 65 if an image is in two");
  add_shard_flags(*command, options->shards);
  command->remove_option(command->get_option("--name"));
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    exit_status = 0;
    if (!options->check) {
      run_split(*options);
    } else if (!run_leak_check(*options)) {
      exit_status = static_cast<int>(core::ExitCode::kData);
    }
  });
}

}  // namespace scaletrain::app
