#include "lib/recipe/checks.h"

#include <fmt/format.h>

#include <initializer_list>

#include "lib/core/compressed_name.h"
#include "lib/core/url.h"
#include "lib/recipe/lists.h"

namespace scaletrain::recipe {
namespace {

// The node at `path`, or the deepest one on the way that is written down.
const Node& written_at(const Node& tree, std::initializer_list<const char*> path) {
  const Node* node = &tree;
  for (const char* key : path) {
    const Node* const next = node->member(key);
    if (next == nullptr) break;
    node = next;
  }
  return *node;
}

void check_batch(const Batch& batch, const Node& tree, Problems& problems) {
  if (!batch.global || *batch.global % batch.per_device == 0) return;
  const std::int64_t below = *batch.global / batch.per_device * batch.per_device;
  const std::int64_t above = below + batch.per_device;
  problems.add(
      written_at(tree, {"batch", "global"}), "/batch/global",
      fmt::format("{} is not a multiple of \"per_device\", which is {}", *batch.global,
                  batch.per_device),
      below == 0 ? fmt::format("use {}", above) : fmt::format("use {} or {}", below, above));
}

void check_mix(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!recipe.mix || recipe.batch.per_device % 2 == 0) return;
  problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device",
               fmt::format("{} is odd, and /mix mixes pairs of samples", recipe.batch.per_device),
               fmt::format("use {}", recipe.batch.per_device + 1));
}

void check_eval_resize(const Data& data, const Node& tree, Problems& problems) {
  if (data.eval_resize == 0 || data.eval_resize >= data.image_size) return;
  problems.add(
      written_at(tree, {"data", "eval_resize"}), "/data/eval_resize",
      fmt::format("{} is less than \"image_size\", which is {}", data.eval_resize, data.image_size),
      fmt::format("use {} as timm and torchvision do, or 0", data.image_size * 8 / 7));
}

void check_image_size(const Recipe& recipe, const Node& tree, Problems& problems) {
  for (const Rule& rule : models().find(recipe.model.name)->rules) {
    if (rule.kind != Rule::Kind::kDividesImageSize) continue;
    const std::int64_t value = recipe.model.integer(rule.key);
    if (recipe.data.image_size % value == 0) continue;
    problems.add(written_at(tree, {"model", rule.key.c_str()}), "/model/" + rule.key,
                 fmt::format("{} does not divide /data/image_size, which is {}", value,
                             recipe.data.image_size),
                 "change one of them");
  }
}

void check_augment(const Source& source, const std::string& pointer, std::int64_t image_size,
                   const Node& tree, Problems& problems) {
  for (std::size_t i = 0; i < source.augment.size(); ++i) {
    for (const Rule& rule : transforms().find(source.augment[i].name)->rules) {
      if (rule.kind != Rule::Kind::kCoversImageSize) continue;
      const std::int64_t value = source.augment[i].integer(rule.key);
      if (value == 0 || value >= image_size) continue;
      problems.add(written_at(tree, {"data", "train", "augment"}),
                   fmt::format("{}/augment/{}/{}", pointer, i, rule.key),
                   fmt::format("{} is less than /data/image_size, which is {}", value, image_size),
                   fmt::format("use {} or more, or 0", image_size));
    }
  }
  for (std::size_t i = 0; i < source.sources.size(); ++i) {
    check_augment(source.sources[i], fmt::format("{}/sources/{}", pointer, i), image_size, tree,
                  problems);
  }
}

// The last maps of a small image have one value: of one sample BatchNorm has no deviation.
void check_batch_norm(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!models().find(recipe.model.name)->has_rule(Rule::Kind::kBatchNorm)) return;
  if (recipe.batch.per_device > 1 || recipe.data.image_size > kBatchNormStride) return;
  problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device",
               fmt::format("is 1, of which BatchNorm cannot compute a deviation in images of {}",
                           recipe.data.image_size),
               "use 2 or more, with a smaller /batch/accumulate for the same global batch");
}

// Fewer in an epoch than in a step; with more ranks or accumulation a step takes more still.
void check_epoch(const Recipe& recipe, const Node& tree, Problems& problems) {
  const std::int64_t samples = recipe.data.samples_per_epoch;
  const std::int64_t batch = recipe.batch.global.value_or(recipe.batch.per_device);
  if (samples == 0 || samples >= batch) return;
  problems.add(written_at(tree, {"data", "samples_per_epoch"}), "/data/samples_per_epoch",
               fmt::format("{} are less than a step's {}", samples, batch),
               "use more, a smaller batch, or 0 for as many as the set has");
}

// The first shard of `source` of which `is_so`; null where there is none.
template <class Predicate>
const std::string* find_shard(const Source& source, const Predicate& is_so) {
  for (const std::string& shard : source.shards) {
    if (is_so(shard)) return &shard;
  }
  for (const Source& one : source.sources) {
    if (const std::string* const found = find_shard(one, is_so)) return found;
  }
  return nullptr;
}

void check_is_not_compressed(const Data& data, const Node& tree, Problems& problems) {
  const std::string* const shard = find_shard(data.train, core::is_compressed);
  if (shard == nullptr) return;
  problems.add(written_at(tree, {"data", "order"}), "/data/order",
               fmt::format("\"indexed\" reads from everywhere at once, and {} is compressed",
                           core::shown_path(core::base_name(*shard))),
               "use \"streamed\", or tars that are not compressed: scaletrain data import tar");
}

void check_train_source(const Data& data, const Node& tree, Problems& problems) {
  const Source& train = data.train;
  const auto refuse = [&](const char* key, const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"data", "train", key}), fmt::format("/data/train/{}", key),
                 found, remedy);
  };
  if (!train.sources.empty() && train.limit) {
    refuse("limit", "stands beside \"sources\"", "give each source a limit of its own");
  }
  if (!train.sources.empty() && train.balanced) {
    refuse("balanced", "stands beside \"sources\"", "balance each source by itself");
  }
  if (data.order != "streamed") return check_is_not_compressed(data, tree, problems);
  const char* const remedy = "leave it out, or use the indexed order";
  if (train.shards.empty()) {
    refuse(train.folder.empty() ? "sources" : "folder", "cannot be streamed",
           "use shards, or the indexed order");
  }
  if (train.limit) refuse("limit", "does not go with the streamed order", remedy);
  if (train.balanced) refuse("balanced", "does not go with the streamed order", remedy);
  if (train.repeats > 1) refuse("repeats", "does not go with the streamed order", remedy);
}

// What a command writes, or what is compressed, is read from the front only; as a file of the cache
// it is read anywhere.
void check_cache(const Data& data, const Node& tree, Problems& problems) {
  if (data.cache) return;
  const auto names = [&data](const auto& is_so) {
    return find_shard(data.train, is_so) || (data.val && find_shard(*data.val, is_so)) ||
           (data.test && find_shard(*data.test, is_so));
  };
  const auto is_command = [](const auto& shard) { return core::url_scheme(shard) == "pipe"; };
  const auto refuse = [&](const char* found, const char* remedy) {
    problems.add(written_at(tree, {"data"}), "/data", found, remedy);
  };
  if (names(is_command)) {
    refuse(R"(names a command (pipe:) and no "cache")",
           R"(add "cache": {"folder": FOLDER, "max_bytes": N}, which keeps what it writes)");
  }
  if (names(core::is_compressed)) {
    refuse(R"(names compressed shards and no "cache")",
           R"(add "cache": {"folder": FOLDER, "max_bytes": N}, which keeps what they hold)");
  }
}

}  // namespace

void check_between_keys(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (problems.none_under("/batch")) check_batch(recipe.batch, tree, problems);
  if (problems.none_under("/batch") && problems.none_under("/mix")) {
    check_mix(recipe, tree, problems);
  }
  // A mistake at the root may be a missing length, model or data.
  if (!problems.none_at_root()) return;
  if (problems.none_under("/data")) {
    check_train_source(recipe.data, tree, problems);
    check_eval_resize(recipe.data, tree, problems);
    check_cache(recipe.data, tree, problems);
    check_augment(recipe.data.train, "/data/train", recipe.data.image_size, tree, problems);
    if (problems.none_under("/batch")) check_epoch(recipe, tree, problems);
  }
  if (problems.none_under("/schedule") && problems.none_under("/epochs") &&
      problems.none_under("/steps")) {
  }
  if (problems.none_under("/model") && problems.none_under("/data")) {
    check_image_size(recipe, tree, problems);
    if (problems.none_under("/batch")) check_batch_norm(recipe, tree, problems);
  }
}

}  // namespace scaletrain::recipe
