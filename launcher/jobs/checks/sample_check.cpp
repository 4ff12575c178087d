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

#include "launcher/place/batch_check.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/shard_index.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxCardBytes = 64 << 20;

// Counts the images of the class folders in `folder`, at most about `enough`; nullopt where a
// folder cannot be listed.
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

// Reads `folder`/card.json; empty where there is none, or none that can be read: `data check`
// reports that.
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

std::optional<std::int64_t> samples_of_index(const std::string& shard, const struct stat& status) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const format::ShardVersion version{
      .bytes = status.st_size,
      .mtime_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec,
      .excluded = format::LabelRule().digest()};
  const auto index = format::MappedIndex::open(shard + ".idx", version);
  if (!index) return std::nullopt;
  return std::ssize(index->entries());
}

std::optional<std::int64_t> samples_of_shards(const std::vector<std::string>& shards,
                                              std::int64_t enough) {
  std::map<fs::path, Stated> cards;  // by folder
  std::int64_t count = 0;
  for (const std::string& shard : shards) {
    struct stat status = {};
    if (core::is_url(shard) || ::stat(shard.c_str(), &status) != 0) return std::nullopt;
    std::optional<std::int64_t> samples = samples_of_index(shard, status);
    if (!samples) {
      const fs::path path(shard), folder = path.parent_path();
      if (!cards.contains(folder)) cards[folder] = stated_in(folder);
      const auto stated = cards[folder].find(path.filename().string());
      if (stated == cards[folder].end() || stated->second.bytes != status.st_size) {
        return std::nullopt;
      }
      samples = stated->second.samples;
    }
    count += *samples;
    if (count >= enough) return count;
  }
  return count;
}

// Returns the samples of one epoch, or a number of at least `enough`; nullopt where the launcher
// cannot count them.
std::optional<std::int64_t> samples_of(const recipe::Source& source, std::int64_t enough) {
  if (!source.sources.empty()) {
    std::int64_t sum = 0;
    for (const recipe::Source& inner : source.sources) {
      const auto more = samples_of(inner, enough);
      if (!more) return std::nullopt;
      sum += *more;
    }
    return sum;
  }
  const auto all = source.folder.empty() ? samples_of_shards(source.shards, enough)
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
  return samples_of(recipe.data.train, std::numeric_limits<std::int64_t>::max());
}

// An empty set is reported by the workers, with its place.
void check_samples(const recipe::Recipe& recipe, int ranks) {
  const recipe::Data& data = recipe.data;
  if (!data.train.tokens.empty()) return;  // launcher/jobs/checks/token_check.h
  // The ranks of an elastic job may be others; its global batch is fixed.
  const bool may_change = recipe.batch.global && !batch_fits(recipe, ranks);
  const recipe::BatchPlan plan = may_change ? recipe::BatchPlan{.global = *recipe.batch.global}
                                            : recipe::plan_batch(recipe, ranks);
  const auto samples = data.samples_per_epoch > 0 ? std::optional(data.samples_per_epoch)
                                                  : samples_of(data.train, plan.global);
  if (samples.value_or(0) > 0) recipe::check_epoch_of(plan, *samples);
}

}  // namespace scaletrain::launcher
