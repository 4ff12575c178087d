#include "lib/recipe/sections/data/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/text/compressed_name.h"
#include "lib/core/text/url.h"
#include "lib/recipe/catalog/component.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/object_list.h"

namespace scaletrain::recipe {
namespace {

TypePtr sample_count(std::int64_t& value) { return integer(value, from(1).to(1e15)); }

void add_places(Object& keys, Source& value) {
  keys.add("shards", shard_list(value.shards),
           "WebDataset tar shards, as paths or URLs. For example `train-{000000..000146}.tar`.")
      .add("folder", path(value.folder),
           "Image folder with one sub-folder for each class, as torchvision's ImageFolder.");
}

void add_tokens(Object& keys, Source& value) {
  keys.add("tokens", token_list(value.tokens),
           "Token files of a language model (.bin, .npy, .tar), as `scaletrain data tokenize` "
           "writes them. Paths or URLs.");
}

void add_limit(Object& keys, Source& value) {
  keys.add("limit", optional(value.limit, sample_count),
           "Maximum number of samples, spread over the set and the same in every run. Default: "
           "all. For example 512 for a quick trial.");
}

void add_balanced(Object& keys, Source& value) {
  keys.add("balanced", flag(value.balanced),
           "Class-balanced sampling: every class is drawn equally often, so images of rare classes "
           "are repeated. Default: false.");
}

void add_cache(Object& keys, Source& value) {
  keys.add(
      "cache",
      optional(value.cache,
               [](SampleCache& inner) {
                 auto cache = std::make_unique<Object>();
                 cache
                     ->add("name", choice(inner.name, {{"memory", "Host memory of each rank."}}),
                           "Kind of cache. Default: memory.")
                     .add("max_bytes", integer(inner.max_bytes, from(1).to(9007199254740991.0)),
                          "Maximum size of the cache of each rank, in bytes. Default: 1073741824 "
                          "(1 GiB). Samples beyond it are read again in each epoch.")
                     .set_short_for("name");
                 return cache;
               }),
      "In-memory cache of encoded samples after their first read, for small data sets on slow "
      "storage. Default: off.");
}

TypePtr mixed_source(Source& value) {
  auto keys = std::make_unique<Object>();
  add_places(*keys, value);
  keys->add("weight", number(value.weight, above(0).to(1e6)),
            "Sampling weight of this data set, relative to the others. Default: 1. For example 3 "
            "for three times as many samples.");
  add_limit(*keys, value);
  add_balanced(*keys, value);
  keys->exactly_one({"shards", "folder"});
  return keys;
}

void check_augment_of(const Source& source, const std::string& pointer, std::int64_t image_size,
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
    check_augment_of(source.sources[i], fmt::format("{}/sources/{}", pointer, i), image_size, tree,
                     problems);
  }
}

void check_is_not_compressed(const Source& train, const Node& tree, Problems& problems) {
  const std::string* const shard = find_shard(train, core::is_compressed);
  if (shard == nullptr) return;
  problems.add(written_at(tree, {"data", "order"}), "/data/order",
               fmt::format("\"indexed\" reads all shards at the same time, and {} is compressed",
                           core::shown_path(core::base_name(*shard))),
               "use \"streamed\", or tars that are not compressed: scaletrain data import tar");
}

// Refuses keys that the streamed order cannot use. `prefix`: one source, "sources/0/".
void check_streamed(const Source& source, const std::string& prefix, const Node& tree,
                    Problems& problems) {
  const auto refuse = [&](const char* key, const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"data", "train", prefix.empty() ? key : "sources"}),
                 "/data/train/" + prefix + key, found, remedy);
  };
  for (const auto& [key, is_there] :
       {std::pair("folder", !source.folder.empty()), std::pair("tokens", !source.tokens.empty())}) {
    if (is_there) refuse(key, "cannot be streamed", "use shards, or the indexed order");
  }
  if (source.repeats > 1) {
    refuse("repeats", "does not go with the streamed order",
           "leave it out, or use the indexed order");
  }
  for (std::size_t i = 0; i < source.sources.size(); ++i) {
    check_streamed(source.sources[i], fmt::format("{}sources/{}/", prefix, i), tree, problems);
  }
}

}  // namespace

TypePtr describe_train(Source& value) {
  auto keys = std::make_unique<Object>();
  add_places(*keys, value);
  add_tokens(*keys, value);
  keys->add("sources", object_list<Source>(value.sources, mixed_source),
            "Mixture of several data sets, each sampled in proportion to its weight.")
      .exactly_one({"shards", "folder", "tokens", "sources"});
  add_limit(*keys, value);
  add_balanced(*keys, value);
  add_cache(*keys, value);
  keys->add("augment", components(value.augment, transforms(), augment_presets()),
            "Data augmentation: the name of a preset, or a list of transforms that are applied in "
            "order. Default: none.")
      .add("repeats", integer(value.repeats, from(1).to(64)),
           "Repeated augmentation, as timm's --aug-repeats: copies of each sample in a global "
           "batch, each augmented differently. An epoch shows this many times fewer different "
           "samples. Default: 1.");
  return keys;
}

TypePtr describe_held_out(Source& value) {
  auto keys = std::make_unique<Object>();
  add_places(*keys, value);
  add_tokens(*keys, value);
  keys->exactly_one({"shards", "folder", "tokens"});
  add_limit(*keys, value);
  add_cache(*keys, value);
  return keys;
}

TypePtr describe_held_out(std::optional<Source>& value) {
  return optional(value, [](Source& inner) { return describe_held_out(inner); });
}

void check_train(const Source& train, const std::string& order, const Node& tree,
                 Problems& problems) {
  const auto refuse = [&](const char* key, const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"data", "train", key}), fmt::format("/data/train/{}", key),
                 found, remedy);
  };
  if (!train.sources.empty() && train.limit) {
    refuse("limit", "cannot be set beside \"sources\"", "give each source its own limit");
  }
  if (!train.sources.empty() && train.balanced) {
    refuse("balanced", "cannot be set beside \"sources\"", "balance each source by itself");
  }
  if (order == "streamed") {
    check_streamed(train, "", tree, problems);
  } else if (train.tokens.empty()) {
    check_is_not_compressed(train, tree, problems);
  }
}

void check_tokens(const Source& source, const Node& written, const std::string& pointer,
                  Problems& problems) {
  if (source.tokens.empty()) return;
  const auto refuse = [&](const char* member, const char* found, const char* remedy) {
    problems.add(written_at(written, {member}), child_pointer(pointer, member), found, remedy);
  };
  const char* const beside = "does not go with \"tokens\"";
  const char* const remedy = "leave it out";
  if (source.limit) refuse("limit", beside, "leave it out, and name fewer files");
  if (source.cache) refuse("cache", beside, remedy);
  if (source.balanced) refuse("balanced", beside, remedy);
  if (!source.augment.empty()) refuse("augment", beside, remedy);
  if (source.repeats > 1) refuse("repeats", beside, remedy);
  if (std::any_of(source.tokens.begin(), source.tokens.end(), core::is_compressed)) {
    refuse("tokens", "names a compressed file",
           "decompress it: tokens are read at random positions");
  }
}

void check_augment(const Source& train, std::int64_t image_size, const Node& tree,
                   Problems& problems) {
  check_augment_of(train, "/data/train", image_size, tree, problems);
}

const std::string* find_shard(const Source& source,
                              const std::function<bool(const std::string&)>& is_so) {
  for (const std::vector<std::string>* const files : {&source.shards, &source.tokens}) {
    for (const std::string& file : *files) {
      if (is_so(file)) return &file;
    }
  }
  for (const Source& one : source.sources) {
    if (const std::string* const found = find_shard(one, is_so)) return found;
  }
  return nullptr;
}

}  // namespace scaletrain::recipe
