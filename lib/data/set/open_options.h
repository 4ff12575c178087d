// How a set of samples is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/format/tar/class_names.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

struct OpenOptions {
  bool lazy = false;  // shards are opened when they are first asked for
  // Sizes and digests of a lazy set's shards that an earlier run knew; -1: not known.
  std::vector<std::int64_t> shard_sizes = {}, shard_digests = {};
  // Storage of the shards; null: credentials and endpoint of the environment, no cache.
  std::shared_ptr<const storage::Stores> stores = nullptr;
  bool warns = false;        // warns of the files that are left alone in each folder
  recipe::Label label = {};  // label rule of shards
  bool skip_bad = false;     // samples of shards without an image or a label are left out
  // The training set's classes: labels are numbered as these, by name where the set has names.
  format::ClassNames classes = {};
  bool ignores_classes = false;  // labels are not used: no class names are read or compared
};

}  // namespace scaletrain::data
