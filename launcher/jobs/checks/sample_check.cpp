#include "launcher/jobs/checks/sample_check.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/jobs/checks/class_check.h"
#include "launcher/place/batch_check.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/url.h"
#include "lib/format/quarantine.h"
#include "lib/format/tar/label_rule.h"
#include "lib/format/tar/shard_index.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxCardBytes = 64 << 20;

// Counts the images in the class folders of `folder`, up to about `enough`; nullopt if a folder
// cannot be listed.
std::optional<std::int64_t> images_in(const std::string& folder, std::int64_t enough) {
  std::int64_t count = 0;
  std::error_code error, ignored;
  for (fs::directory_iterator part(folder, error), end; !error && part != end;
       part.increment(error)) {
    if (part->path().filename().string().starts_with('.') || !part->is_directory(ignored)) continue;
    fs::directory_iterator file(part->path(), error);
    for (; !error && file != end; file.increment(error)) {
      const bool hidden = file->path().filename().string().starts_with('.');
      if (!hidden && format::is_image_extension(lower_extension(file->path()))) ++count;
      if (count >= enough) return count;
    }
  }
  if (error) return std::nullopt;
  return count;
}

// Samples that card.json states for one shard.
struct StatedSamples {
  std::int64_t samples = 0, bytes = 0;
};
using Stated = std::map<std::string, StatedSamples>;

// Reads `folder`/card.json; empty if there is none or it is damaged, which `data check` reports.
Stated stated_in(const fs::path& folder) {
  const fs::path card = folder / "card.json";
  std::error_code ignored;
  if (!fs::is_regular_file(card, ignored)) return {};
  const auto json =
      nlohmann::json::parse(core::read_file(card, kMaxCardBytes, core::ExitCode::kData), nullptr,
                            /*allow_exceptions=*/false);
  const auto shards = json.is_object() ? json.find("shards") : json.end();
  if (shards == json.end() || !shards->is_array()) return {};
  Stated stated;
  for (const nlohmann::json& shard : *shards) {
    const bool is_whole = shard.is_object() && shard.contains("name") &&
                          shard["name"].is_string() && shard.contains("samples") &&
                          shard["samples"].is_number_integer() && shard.contains("bytes") &&
                          shard["bytes"].is_number_integer();
    if (is_whole) stated[shard["name"]] = {shard["samples"], shard["bytes"]};
  }
  return stated;
}

// Facts that select the index of a shard, as workers look for it (lib/data/set/stored_index.h).
struct IndexChoice {
  std::string cache;       // data.index_cache
  std::uint64_t rule = 0;  // digest of the label rule
};

// Known facts about the shards in one folder.
struct ShardFolder {
  format::Quarantine quarantine;
  std::optional<Stated> stated;  // read when it is needed
};

IndexChoice index_choice_of(const recipe::Recipe& recipe) {
  const recipe::Data& data = recipe.data;
  format::LabelRule rule{.field = data.label.field,
                         .key = data.label.key,
                         .skips_incomplete = data.bad_samples.policy == "skip"};
  if (auto classes = classes_of_training(recipe)) rule.classes = std::move(classes->names);
  return {.cache = data.index_cache, .rule = rule.digest()};
}

// Returns the samples in the index of a local shard, in data.index_cache or beside the shard;
// nullopt if neither is of this version of the shard.
std::optional<std::int64_t> samples_of_index(const std::string& shard, const struct stat& status,
                                             const std::vector<std::string>& excluded,
                                             const IndexChoice& choice) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const format::ShardVersion version{
      .bytes = status.st_size,
      .mtime_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec,
      .excluded = format::excluded_digest(excluded) ^ choice.rule};
  for (const std::string& cache : {choice.cache, std::string()}) {
    const auto index = format::MappedIndex::open(format::index_path(shard, cache), version);
    if (index) return std::ssize(index->entries());
  }
  return std::nullopt;
}

std::optional<std::int64_t> samples_of_card(const fs::path& shard, const struct stat& status,
                                            ShardFolder& folder) {
  if (!folder.stated) folder.stated = stated_in(shard.parent_path());
  const auto stated = folder.stated->find(shard.filename().string());
  if (stated == folder.stated->end() || stated->second.bytes != status.st_size) return std::nullopt;
  return stated->second.samples;
}

std::optional<std::int64_t> samples_of_shards(const std::vector<std::string>& shards,
                                              const IndexChoice& choice, std::int64_t enough) {
  std::map<fs::path, ShardFolder> folders;
  std::int64_t count = 0;
  for (const std::string& shard : shards) {
    struct stat status = {};
    if (core::is_url(shard) || ::stat(shard.c_str(), &status) != 0) return std::nullopt;
    const fs::path path(shard), parent = path.parent_path();
    const auto [place, is_new] = folders.try_emplace(parent);
    ShardFolder& folder = place->second;
    if (is_new) folder.quarantine = format::Quarantine::beside(parent);
    const std::string name = path.filename().string();
    if (folder.quarantine.holds_shard(name)) continue;
    auto samples = samples_of_index(shard, status, folder.quarantine.keys_of(name), choice);
    if (!samples) samples = samples_of_card(path, status, folder);
    if (!samples) return std::nullopt;
    count += *samples;
    if (count >= enough) return count;
  }
  return count;
}

// Returns the samples of one epoch, or a number of at least `enough`; nullopt if the launcher
// cannot count them.
std::optional<std::int64_t> samples_of(const recipe::Source& source, const IndexChoice& choice,
                                       std::int64_t enough) {
  if (!source.sources.empty()) {
    std::int64_t sum = 0;
    for (const recipe::Source& inner : source.sources) {
      const auto more = samples_of(inner, choice, enough);
      if (!more) return std::nullopt;
      sum += *more;
    }
    return sum;
  }
  const auto all = source.folder.empty() ? samples_of_shards(source.shards, choice, enough)
                                         : images_in(source.folder, enough);
  if (!all || !source.limit) return all;
  return std::min(*all, *source.limit);
}

}  // namespace

std::string lower_extension(const fs::path& file) {
  const std::string extension = core::lower_case(file.extension().string());
  return extension.empty() ? "" : extension.substr(1);
}

std::optional<std::int64_t> training_images(const recipe::Recipe& recipe) {
  if (recipe.data.samples_per_epoch > 0) return recipe.data.samples_per_epoch;
  return samples_of(recipe.data.train, index_choice_of(recipe),
                    std::numeric_limits<std::int64_t>::max());
}

// The workers report an empty set, with its file.
void check_samples(const recipe::Recipe& recipe, int ranks) {
  const recipe::Data& data = recipe.data;
  if (!data.train.tokens.empty()) return;  // launcher/jobs/checks/token_check.h
  // The ranks of an elastic job may be others; its global batch is fixed.
  const bool may_change = recipe.batch.global && !batch_fits(recipe, ranks);
  const recipe::BatchPlan plan = may_change ? recipe::BatchPlan{.global = *recipe.batch.global}
                                            : recipe::plan_batch(recipe, ranks);
  const auto samples = data.samples_per_epoch > 0
                           ? std::optional(data.samples_per_epoch)
                           : samples_of(data.train, index_choice_of(recipe), plan.global);
  if (samples.value_or(0) > 0) recipe::check_epoch_of(plan, *samples);
}

}  // namespace scaletrain::launcher
