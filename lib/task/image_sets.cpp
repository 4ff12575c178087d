#include "lib/task/image_sets.h"

#include <algorithm>
#include <string>

#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/url.h"
#include "lib/data/set/open_dataset.h"
#include "lib/data/set/set_digest.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::task {
namespace {

// Looking into a remote set would fetch it.
bool is_plain_and_local(const recipe::Source& source) {
  return std::none_of(source.shards.begin(), source.shards.end(),
                      [](const std::string& path) {
                        return core::is_url(path) || core::is_compressed(path);
                      }) &&
         std::all_of(source.sources.begin(), source.sources.end(), is_plain_and_local);
}

std::string digest_of_samples(const data::Dataset& set) {
  try {
    return data::set_digest(set);
  } catch (const core::Error&) {  // reported where the sample is trained on
    return "";
  }
}

}  // namespace

ImageSets::ImageSets(const recipe::Recipe& recipe, std::int64_t num_classes, bool multi_label)
    : data_(recipe.data), options_(data::loader_options(recipe.data)) {
  options_.num_classes = num_classes;
  options_.normalize = recipe::for_channels(recipe.data.normalize, recipe.model.in_channels);
  options_.multi_label = multi_label;
  options_.seed = recipe.seed;
}

OpenSet ImageSets::open(Split split, const Reader& reader, core::BufferPool& pool) const {
  data::LoaderOptions options = options_;
  options.threads = reader.threads;
  data::OpenOptions how{.stores = reader.stores,
                        .warns = reader.warns,
                        .label = data_.label,
                        .skip_bad = options.skip_bad,
                        .classes = reader.classes};
  OpenSet result;
  if (split != Split::kTrain) {
    const auto set = data::open_dataset(source_of(data_, split), data_.index_cache, how);
    result.set = set;
    result.stream = data::eval_images(set, options, reader.slice, pool);
    return result;
  }
  how.lazy = options.streamed;
  how.shard_sizes = reader.shard_sizes;
  how.shard_digests = reader.shard_digests;
  const auto set = data::open_dataset(data_.train, data_.index_cache, how);
  result.set = set;
  result.stream = data::train_images(set, options, reader.slice, pool);
  if (!options.streamed && is_plain_and_local(data_.train)) {
    result.contents = digest_of_samples(*set);
  }
  return result;
}

}  // namespace scaletrain::task
