// Options for opening a set of samples.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/format/tar/class_names.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

struct OpenOptions {
  bool lazy = false;  // opens shards at first use
  // Sizes and digests of a lazy set's shards from an earlier run; -1: not known.
  std::vector<std::int64_t> shard_sizes = {}, shard_digests = {};
  // Storage of the shards; null: credentials and endpoint from the environment, no cache.
  std::shared_ptr<const storage::Stores> stores = nullptr;
  bool warns = false;        // warns of ignored files in each folder
  recipe::Label label = {};  // label rule of shards
  bool skip_bad = false;     // skips samples of shards without an image or a label
  // The training set's classes: labels are mapped to their numbers by name if the set has names.
  format::ClassNames classes = {};
  bool ignores_classes = false;  // labels are not used: no class names are read or compared
};

}  // namespace scaletrain::data
