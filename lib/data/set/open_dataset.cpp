#include "lib/data/set/open_dataset.h"

#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "lib/data/set/folder.h"
#include "lib/data/set/kept_set.h"
#include "lib/data/set/mixture.h"
#include "lib/data/set/shards.h"
#include "lib/data/set/subset.h"

namespace scaletrain::data {
namespace {

std::shared_ptr<const Dataset> open_class_folders(const std::string& path, bool warns) {
  LeftAlone left_alone;
  std::shared_ptr<const Dataset> dataset = open_folder(path, &left_alone);
  if (warns && !left_alone.empty()) {
    core::warn("{}: no images, left alone: {}", path, shown_files(left_alone));
  }
  return dataset;
}

std::shared_ptr<const Dataset> open_one(const recipe::Source& source,
                                        const std::string& index_cache,
                                        const OpenOptions& options) {
  std::shared_ptr<const Dataset> dataset = source.folder.empty()
                                               ? open_shards(source.shards, index_cache, options)
                                               : open_class_folders(source.folder, options.warns);
  if (!source.limit || *source.limit >= dataset->size()) return dataset;
  return std::make_shared<Subset>(std::move(dataset), *source.limit);
}

std::shared_ptr<const Dataset> open_all(const recipe::Source& source,
                                        const std::string& index_cache,
                                        const OpenOptions& options) {
  std::vector<Mixture::Member> members;
  for (const recipe::Source& one : source.sources) {
    members.push_back({open_one(one, index_cache, options), one.weight, one.balanced});
  }
  if (members.empty()) {
    std::shared_ptr<const Dataset> dataset = open_one(source, index_cache, options);
    if (!source.balanced) return dataset;
    members.push_back({std::move(dataset), 1, true});
  }
  return std::make_shared<Mixture>(std::move(members));
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
