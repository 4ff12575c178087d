// Sources of samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Caches samples in memory (lib/data/set/kept_set.h).
struct SampleCache {
  std::string name = "memory";
  std::int64_t max_bytes = 1 << 30;  // per rank
};

// Source of samples: exactly one of shards, folder, tokens and, for train, sources.
struct Source {
  std::vector<std::string> shards;    // brace-expanded; absolute paths and URLs
  std::vector<std::string> tokens;    // files of tokens, brace-expanded; absolute paths and URLs
  std::string folder;                 // one sub-folder per class, absolute
  std::optional<std::int64_t> limit;  // largest number of samples used, always the same ones
  std::optional<SampleCache> cache;
  // train only
  std::vector<Source> sources;     // mixed by weight
  bool balanced = false;           // every class is drawn equally often
  double weight = 1;               // weight among `sources`
  std::vector<Component> augment;  // transforms.def
  std::int64_t repeats =
      1;  // copies of each sample in a global batch (lib/data/order/repeated_order.h)
};

// Returns the first shard or token file of a source for which `is_so` is true; null if there is
// none.
const std::string* find_shard(const Source& source,
                              const std::function<bool(const std::string&)>& is_so);

TypePtr describe_train(Source& value);
TypePtr describe_held_out(Source& value);
TypePtr describe_held_out(std::optional<Source>& value);

// Checks the training source for /data/order `order`.
void check_train(const Source& train, const std::string& order, const Node& tree,
                 Problems& problems);

// Refuses keys that do not apply to token files in a source at `pointer`, written at `written`.
void check_tokens(const Source& source, const Node& written, const std::string& pointer,
                  Problems& problems);

// Checks the transforms of the training source for images of this size.
void check_augment(const Source& train, std::int64_t image_size, const Node& tree,
                   Problems& problems);

}  // namespace scaletrain::recipe
