#include "lib/data/set/open_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/set/classes_file.h"
#include "lib/data/set/folder.h"
#include "lib/data/set/kept_set.h"
#include "lib/data/set/mixture.h"
#include "lib/data/set/renumbered_set.h"
#include "lib/data/set/shard_subset.h"
#include "lib/data/set/shards.h"
#include "lib/data/set/subset.h"

namespace scaletrain::data {
namespace {

std::shared_ptr<const Dataset> open_class_folders(const std::string& path, bool warns) {
  LeftAlone left_alone;
  std::shared_ptr<const Dataset> dataset = open_folder(path, &left_alone);
  if (warns && !left_alone.empty()) {
    core::warn("{}: these files are not images and are ignored: {}", path, shown_files(left_alone));
  }
  return dataset;
}

// Returns the numbers from index `count` on, for the shards after the first ones.
std::vector<std::int64_t> behind(const std::vector<std::int64_t>& numbers, std::int64_t count) {
  return {numbers.begin() + std::min(count, std::ssize(numbers)), numbers.end()};
}

void check_count(const std::vector<const recipe::Source*>& sources, std::int64_t shards,
                 const OpenOptions& options) {
  const std::int64_t before = std::ssize(options.shard_sizes);  // 0: unknown
  if (before == 0 || before == shards) return;
  throw core::DataError(
      core::shown_path(sources.front()->shards.front()),
      fmt::format("is the first of {}, and there were {} before the run was resumed",
                  core::counted(shards, "shard"), before),
      "a position of the streamed order counts the samples of these shards: put the old ones "
      "back, or start a new run");
}

// Returns the folder or file that names a source's classes, for messages.
std::string classes_place(const recipe::Source& source) {
  return source.folder.empty() ? shown_classes_file(source.shards.front()) : source.folder;
}

// Opens the sources without subsets, one after the other. A class name has the same number in all
// of them: the one in options.classes, otherwise that of the first source with class names.
std::vector<std::shared_ptr<const Dataset>> open_stored(
    const std::vector<const recipe::Source*>& sources, const std::string& index_cache,
    const OpenOptions& options) {
  std::vector<std::shared_ptr<const Dataset>> sets;
  std::int64_t shards = 0;
  OpenOptions rest = options;
  for (const recipe::Source* const source : sources) {
    std::shared_ptr<const Dataset> set;
    if (!source->folder.empty()) {
      set = open_class_folders(source->folder, options.warns);
    } else {
      rest.shard_sizes = behind(options.shard_sizes, shards);
      rest.shard_digests = behind(options.shard_digests, shards);
      set = open_shards(source->shards, index_cache, rest);
    }
    sets.push_back(renumbered(std::move(set), rest.classes, classes_place(*source)));
    if (rest.classes.names.empty()) {
      rest.classes = {sets.back()->classes(),
                      fmt::format("/data/train/sources/{}", sets.size() - 1)};
    }
    shards += sets.back()->shard_count();
  }
  check_count(sources, shards, options);
  return sets;
}

std::shared_ptr<const Dataset> limited(std::shared_ptr<const Dataset> whole,
                                       const recipe::Source& source, bool lazy) {
  if (!source.limit) return whole;
  if (lazy) return std::make_shared<ShardSubset>(std::move(whole), *source.limit);
  if (*source.limit >= whole->size()) return whole;
  return std::make_shared<Subset>(std::move(whole), *source.limit);
}

std::shared_ptr<const Dataset> open_all(const recipe::Source& source,
                                        const std::string& index_cache,
                                        const OpenOptions& options) {
  std::vector<const recipe::Source*> sources;
  for (const recipe::Source& one : source.sources) sources.push_back(&one);
  if (sources.empty()) sources.push_back(&source);
  auto sets = open_stored(sources, index_cache, options);
  std::vector<Mixture::Member> members;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    members.push_back({limited(std::move(sets[i]), *sources[i], options.lazy), sources[i]->weight,
                       sources[i]->balanced});
  }
  if (source.sources.empty() && !source.balanced) return members.front().dataset;
  return std::make_shared<Mixture>(std::move(members), options.stores);
}

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const recipe::Source& source,
                                            const std::string& index_cache,
                                            const OpenOptions& options) {
  std::shared_ptr<const Dataset> dataset = open_all(source, index_cache, options);
  if (!source.cache) return dataset;
  return std::make_shared<KeptSet>(std::move(dataset), source.cache->max_bytes);
}

}  // namespace scaletrain::data
