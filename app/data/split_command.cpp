#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/copy_samples.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/sample_table.h"
#include "app/data/files/set_classes.h"
#include "app/data/files/shard_set.h"
#include "app/data/files/shard_writer.h"
#include "app/data/split_plan.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"
#include "lib/data/set/classes_file.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {
namespace {

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

ShardOptions options_of(const SplitOptions& options, const char* part) {
  ShardOptions shards = options.shards;
  shards.name = part;
  return shards;
}

// Group of a sample: the part of the key that the expression matches (its first parenthesis, if it
// has one); without an expression or a match, all images with the same bytes.
class Grouping {
 public:
  explicit Grouping(const std::string& expression) : has_expression_(!expression.empty()) {
    try {
      pattern_ = expression;
    } catch (const std::regex_error& error) {
      throw core::UsageError("--group-by", fmt::format("\"{}\": {}", expression, error.what()),
                             "write a regular expression, such as ^[^/]*/([^_]*)");
    }
  }

  std::uint64_t group_of(const std::string& key, ContentHash hash) {
    if (!has_expression_) return hash.high;
    ++keys_;
    std::smatch match;
    if (!std::regex_search(key, match, pattern_)) {
      if (unmatched_++ == 0) first_unmatched_ = format::shown_name(key);
      return hash.high;
    }
    return core::xxh3_64(match[match.size() > 1 ? 1 : 0].str());
  }

  // Call after the last sample. Throws core::UsageError if the expression matches no key, and warns
  // if it does not match all of them.
  void check_matches() const {
    if (unmatched_ == 0) return;
    if (unmatched_ == keys_) {
      throw core::UsageError(
          "--group-by",
          fmt::format("matches 0 of {} keys; the first is {}", keys_, first_unmatched_),
          "write an expression that occurs in the keys; scaletrain data ls lists them");
    }
    core::warn(
        "--group-by does not match {} of {} keys; each of these samples is a group by itself; the "
        "first: {}",
        unmatched_, keys_, first_unmatched_);
  }

 private:
  std::regex pattern_;
  bool has_expression_;
  std::int64_t keys_ = 0, unmatched_ = 0;
  std::string first_unmatched_;  // for messages
};

// An image that is in more than one of the parts.
struct Leak {
  std::uint32_t first = 0, second = 0;  // numbers of samples
};

std::vector<Leak> find_leaks(const std::vector<ContentHash>& hashes,
                             const std::function<std::size_t(std::uint32_t)>& part_of) {
  std::vector<Leak> leaks;
  for (const auto& equal : equal_sets(hashes)) {
    for (const std::uint32_t number : equal) {
      if (part_of(number) != part_of(equal[0])) leaks.push_back({equal[0], number});
    }
  }
  std::sort(leaks.begin(), leaks.end(),
            [](const Leak& a, const Leak& b) { return a.second < b.second; });
  return leaks;
}

// The first and the second of every leak, one after the other.
std::vector<std::string> shown_leaks(const ShardSet& set, const std::vector<SamplePlace>& places,
                                     std::span<const Leak> leaks) {
  std::vector<SamplePlace> both;
  both.reserve(2 * leaks.size());
  for (const Leak& leak : leaks) {
    both.push_back(places[leak.first]);
    both.push_back(places[leak.second]);
  }
  return shown_samples(set, both);
}

// Each PATH is a part: checks for images that are in two of them.
bool run_leak_check(const SplitOptions& options) {
  if (options.paths.size() < 2) {
    throw core::UsageError(
        "split --check", "needs two parts or more to compare, and one PATH is given",
        "name each part: split --check train-{000000..000009}.tar val-000000.tar");
  }
  const storage::Stores stores;
  std::vector<std::string> paths;
  std::vector<std::size_t> part_of_shard;
  for (std::size_t part = 0; part < options.paths.size(); ++part) {
    for (std::string& path : resolve_shards(stores, {options.paths[part]})) {
      paths.push_back(std::move(path));
      part_of_shard.push_back(part);
    }
  }
  const ShardSet set(stores, paths);
  const HashedSamples samples = hash_samples(set, resolve_threads(options.threads));
  const std::vector<Leak> leaks = find_leaks(samples.hashes, [&](std::uint32_t number) {
    return part_of_shard[samples.places[number].shard];
  });
  const std::vector<std::string> shown = shown_leaks(set, samples.places, leaks);
  if (options.as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < shown.size(); i += 2) list.push_back({shown[i], shown[i + 1]});
    print_json({{"samples", samples.places.size()}, {"leaks", list}});
  } else {
    for (std::size_t i = 0; i < shown.size(); i += 2) {
      print(fmt::format("{} is also {}\n", shown[i + 1], shown[i]));
    }
    print(fmt::format("{} in {}, {} in more than one\n",
                      core::counted(std::ssize(samples.places), "sample"),
                      core::counted(std::ssize(options.paths), "part"),
                      core::counted(std::ssize(leaks), "image")));
  }
  return leaks.empty();
}

struct Plan : SplitPlan {
  std::size_t leaks = 0;
};

// Checks that each requested part has samples.
void check_parts(const std::vector<std::uint8_t>& parts, const std::vector<double>& shares) {
  for (std::size_t part = 0; part < shares.size(); ++part) {
    if (shares[part] == 0 || std::count(parts.begin(), parts.end(), part) > 0) continue;
    throw core::DataError(
        "split", fmt::format("no sample of {} is left for {}", parts.size(), kParts[part]),
        "samples of one group stay together: use a larger share, 0, or smaller groups");
  }
}

Plan make_plan(const SplitOptions& options, const ShardSet& set, int threads) {
  Grouping grouping(options.group_by);
  std::vector<SplitSample> to_divide;
  const HashedSamples samples =
      hash_samples(set, threads, [&](const FoundSample& sample, ContentHash hash) {
        to_divide.push_back(
            {grouping.group_of(sample.group.key, hash), sample.label, sample.number});
      });
  grouping.check_matches();
  const std::vector<double> shares{1 - options.val - options.test, options.val, options.test};
  Plan plan{plan_split(std::move(to_divide), shares, options.seed)};
  check_parts(plan.parts, shares);
  const std::vector<Leak> leaks =
      find_leaks(samples.hashes, [&](std::uint32_t number) { return plan.parts[number]; });
  plan.leaks = leaks.size();
  if (!leaks.empty()) {
    const auto first = shown_leaks(set, samples.places, std::span(leaks).first(1));
    core::warn("{} {} in more than one part, as --group-by asks; the first: {} and {}",
               core::counted(std::ssize(leaks), "image"), leaks.size() == 1 ? "is" : "are",
               first[0], first[1]);
  }
  return plan;
}

void run_split(const SplitOptions& options) {
  if (options.val + options.test >= 1) {
    throw core::UsageError("split", "--val and --test leave nothing for training",
                           "their sum must be below 1");
  }
  if (options.shards.folder.empty()) {
    throw core::UsageError("split", "--out is missing", "name a folder for the new shards");
  }
  const storage::Stores stores;
  const std::vector<std::string> paths = resolve_shards(stores, options.paths);
  for (const char* const part : kParts) refuse_replaced_inputs(options_of(options, part), paths);
  const ShardSet set(stores, paths);
  const std::vector<std::string> classes = data::shared_classes(paths, stores);
  check_classes(stores, options.shards.folder, classes);
  const int threads = resolve_threads(options.threads);
  const Plan plan = make_plan(options, set, threads);
  std::vector<std::unique_ptr<ShardWriter>> writers;
  writers.reserve(kParts.size());
  for (const char* const part : kParts) {
    writers.push_back(std::make_unique<ShardWriter>(stores, options_of(options, part)));
  }
  writers.front()->claim_classes(classes);  // for all three: it is the first to be finished
  copy_samples(set, threads,
               [&](std::uint32_t number) { return writers[plan.parts[number]].get(); });
  // All are whole before one is put there.
  for (const auto& writer : writers) writer->close_shard();

  nlohmann::ordered_json report = nlohmann::ordered_json::object();
  std::string text;
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    const std::int64_t written = std::ssize(writers[part]->finish());
    const auto count = std::count(plan.parts.begin(), plan.parts.end(), part);
    report[kParts[part]] = {{"samples", count}, {"shards", written}};
    text += fmt::format("{}: {} in {}\n", kParts[part], core::counted(count, "sample"),
                        core::counted(written, "shard"));
  }
  report["groups"] = plan.groups;
  report["leaks"] = plan.leaks;
  if (!options.group_by.empty()) text += core::counted(plan.groups, "group") + "\n";
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
      "split",
      "split shards into training, validation and test shards, with equal shares of each class");
  add_shards_argument(*command, options->paths);
  command->add_option("--out", options->shards.folder, "Folder for the new shards.");
  command->add_option("--val", options->val, "Fraction of the samples for validation.")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--test", options->test, "Fraction of the samples for the test set.")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--group-by", options->group_by,
                      "Regular expression that groups samples: keys with equal matches go to the "
                      "same part. Identical images always do.");
  command->add_option("--seed", options->seed, "Random seed of the split.")->capture_default_str();
  command->add_flag("--check", options->check,
                    "Check an existing split, each PATH being one part. Exit code 65 if an image "
                    "is in two parts.");
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
