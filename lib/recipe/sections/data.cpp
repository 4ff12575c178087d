#include "lib/recipe/sections/data.h"

#include <fmt/format.h>

#include "lib/core/compressed_name.h"
#include "lib/core/error.h"
#include "lib/core/url.h"
#include "lib/recipe/paths.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/schema/object_map.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kExtraPrefix = "extra/";

TypePtr bad_samples(BadSamples& value) {
  auto keys = std::make_unique<Object>();
  keys->add("policy", choice(value.policy, {"fail", "skip"}),
            "end the run, or take other samples in their place and list them")
      .add("max_rate", number(value.max_rate, from(0).to(1)),
           "part of the samples that may be skipped, of 1,000 at least; more end the run")
      .set_short_for("policy");
  return keys;
}

TypePtr label(Label& value) {
  auto keys = std::make_unique<Object>();
  keys->add("field", text(value.field, "a name as cls, json or folder"),
            "what follows the key in a member's name; folder: the folder in the key")
      .add("key", text(value.key, "a key of the JSON object in the field"),
           "of a field that is a JSON object; without it the field is the label itself")
      .set_short_for("field");
  return keys;
}

TypePtr normalize(Normalize& value) {
  auto keys = std::make_unique<Object>();
  keys->add("mean", numbers(value.mean, 3, from(0).to(1)), "of red, green, blue; values are 0 to 1")
      .add("std", numbers(value.std, 3, above(0).to(10)), "of red, green, blue");
  return keys;
}

TypePtr cache(std::optional<Cache>& value) {
  return optional(value, [](Cache& inner) {
    auto keys = std::make_unique<Object>();
    keys->require("folder", path(inner.folder), "on a disk or tmpfs of the node; jobs may share it")
        .require("max_bytes", integer(inner.max_bytes, from(1 << 20).to(9007199254740991.0)),
                 "the least recently used shards are removed beyond it");
    return keys;
  });
}

void check_eval_resize(const Data& data, const Node& tree, Problems& problems) {
  if (data.eval_resize == 0 || data.eval_resize >= data.image_size) return;
  problems.add(
      written_at(tree, {"data", "eval_resize"}), "/data/eval_resize",
      fmt::format("{} is less than \"image_size\", which is {}", data.eval_resize, data.image_size),
      fmt::format("use {} as timm and torchvision do, or 0", data.image_size * 8 / 7));
}

// What a command writes, or what is compressed, is read from the front only; as a file of the cache
// it is read anywhere.
void check_cache(const Data& data, const Node& tree, Problems& problems) {
  if (data.cache) return;
  const auto names = [&data](const auto& is_so) { return find_shard(data, is_so) != nullptr; };
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

// Lanes share what a source is limited to, unless it is balanced, which is not divided into lanes.
void check_limit(const Source& source, const std::string& prefix, std::int64_t lanes,
                 const Node& tree, Problems& problems) {
  if (source.limit && *source.limit < lanes && !source.balanced) {
    problems.add(written_at(tree, {"data", "train", prefix.empty() ? "limit" : "sources"}),
                 fmt::format("/data/train/{}limit", prefix),
                 fmt::format("{} is less than /data/lanes, which is {}", *source.limit, lanes),
                 "use fewer lanes: each needs a sample");
  }
  for (std::size_t i = 0; i < source.sources.size(); ++i) {
    check_limit(source.sources[i], fmt::format("sources/{}/", i), lanes, tree, problems);
  }
}

// "val" or "extra/NAME" below /data.
const Node& written_at_name(const Node& sets, const std::string& name) {
  if (!name.starts_with(kExtraPrefix)) return written_at(sets, {name.c_str()});
  return written_at(sets, {"extra", name.c_str() + std::string(kExtraPrefix).size()});
}

void check_label(const Data& data, const Node& tree, Problems& problems) {
  if (data.label.field != "folder" || data.label.key.empty()) return;
  problems.add(written_at(tree, {"data", "label", "key"}), "/data/label/key",
               "does not go with \"folder\", which is no field", "leave it out");
}

void check_token_sets(const Data& data, const Node& tree, Problems& problems) {
  const bool has_tokens = !data.train.tokens.empty();
  const Node& sets = written_at(tree, {"data"});
  check_tokens(data.train, written_at(sets, {"train"}), "/data/train", problems);
  for (const auto& [name, source] : held_out(data)) {
    const Node& written = written_at_name(sets, name);
    const std::string pointer = fmt::format("/data/{}", name);
    check_tokens(*source, written, pointer, problems);
    if (source->tokens.empty() != has_tokens) continue;
    problems.add(written, pointer,
                 fmt::format("is of {}, and /data/train of {}", has_tokens ? "images" : "tokens",
                             has_tokens ? "tokens" : "images"),
                 "use sets of one kind");
  }
  if (data.token_bytes % 2 != 0) {
    problems.add(written_at(tree, {"data", "token_bytes"}), "/data/token_bytes",
                 fmt::format("{} is neither 2 nor 4", data.token_bytes),
                 "use 2 for tokens of 16 bits, 4 for those of 32");
  }
}

// `Held` is a Source, const or not.
template <class Held, class Sets>
std::vector<std::pair<std::string, Held*>> list_held_out(Sets& data) {
  std::vector<std::pair<std::string, Held*>> result;
  result.reserve(2 + data.extra.size());
  if (data.val) result.emplace_back("val", &*data.val);
  if (data.test) result.emplace_back("test", &*data.test);
  for (auto& [name, source] : data.extra) result.emplace_back(kExtraPrefix + name, &source);
  return result;
}

}  // namespace

Normalize for_channels(const Normalize& normalize, std::int64_t channels) {
  if (channels == 3) return normalize;
  const auto mean_of = [](const std::vector<double>& values) {
    return std::vector<double>(3, (values[0] + values[1] + values[2]) / 3);
  };
  return {.mean = mean_of(normalize.mean), .std = mean_of(normalize.std)};
}

TypePtr describe(Data& value) {
  auto keys = std::make_unique<Object>();
  keys->require("train", describe_train(value.train), "the samples to learn from")
      .add("val", describe_held_out(value.val), "the samples that choose the best checkpoint")
      .add("test", describe_held_out(value.test), "the samples that are looked at once, at the end")
      .add("extra", object_map<Source>(value.extra, describe_held_out),
           "further held-out sets by name, looked at with each validation")
      .add("image_size", integer(value.image_size, from(8).to(4096)),
           "height and width of an image for the model")
      .add("resize_ramp", describe(value.resize_ramp),
           "images of training are smaller at first; held-out ones always have image_size")
      .add("eval_resize", integer(value.eval_resize, from(0).to(8192)),
           "what the shorter side of a held-out image becomes before the centre of image_size is "
           "cut out, 256 for 224 as a rule; 0: image_size")
      .add("eval_filter", choice(value.eval_filter, {"bilinear", "bicubic"}),
           "how pixels of held-out images are weighed, always against aliasing")
      .add("context", integer(value.context, from(0).to(1 << 24)),
           "tokens of a sample of a text; 0: the model's positions")
      .add("token_bytes", integer(value.token_bytes, from(0).to(4)),
           "bytes of a token in a .bin without a header: 2 or 4; 0: as its card or its .idx says, "
           "else 2, but needed for a vocab_size above 65536")
      .add("document_attention", flag(value.document_attention),
           "a token sees nothing of the documents before its own; their ends are the card's "
           "end_of_text")
      .add("threads", integer(value.threads, from(0).to(1024)),
           "decoding threads of a rank; 0: automatic")
      .add("prefetch", integer(value.prefetch, from(1).to(1024)), "batches that are read ahead")
      .add("shuffle_shards", integer(value.shuffle_shards, from(0).to(kMostCount)),
           "samples are shuffled within groups of so many shards; 0: over all of them")
      .add("order", choice(value.order, {"indexed", "streamed"}),
           "indexed: any sample may follow any other; streamed: ranks read their own shards, one "
           "after the other")
      .add("lanes", integer(value.lanes, from(1).to(65536)),
           "streams of the streamed order; a multiple of the number of ranks")
      .add("samples_per_epoch", integer(value.samples_per_epoch, from(0).to(1e15)),
           "length of an epoch; 0: as many as the training set has")
      .add("bad_samples", bad_samples(value.bad_samples), "images that do not decode")
      .add("index_cache", path(value.index_cache),
           "folder for the shards' indexes; without it they are put beside the shards, where that "
           "folder can be written")
      .add("cache", cache(value.cache),
           "remote shards are kept as files; without it ranges are read from the server")
      .add("normalize", normalize(value.normalize), "what is taken from the pixels and divided by")
      .add("exif_orientation", flag(value.exif_orientation),
           "pictures are turned as their EXIF says; torchvision does not")
      .add("jpeg", choice(value.jpeg, {"strict", "lenient"}),
           "lenient: what libjpeg only warns about is decoded, counted and reported")
      .add("max_pixels", integer(value.max_pixels, from(1).to(4e9)),
           "of a picture; a larger one is no image, as bad_samples has it")
      .add("label", label(value.label), "where shards have the class of a sample")
      .add("label_format", choice(value.label_format, {"auto", "class_numbers", "multi_hot"}),
           "how a label that is a list is read: [1, 4] as class_numbers is [0, 1, 0, 0, 1] as "
           "multi_hot; auto: class_numbers, and what may be multi_hot is an error");
  return keys;
}

void check(const Data& data, const Node& tree, Problems& problems) {
  check_train(data.train, data.order, tree, problems);
  if (data.order == "streamed") check_limit(data.train, "", data.lanes, tree, problems);
  check_token_sets(data, tree, problems);
  check_eval_resize(data, tree, problems);
  check(data.resize_ramp, data.image_size, tree, problems);
  check_cache(data, tree, problems);
  check_label(data, tree, problems);
  check_augment(data.train, data.image_size, tree, problems);
}

// Fewer in an epoch than in a step; with more ranks or accumulation a step takes more still.
void check_epoch(const Data& data, std::int64_t batch, const Node& tree, Problems& problems) {
  const std::int64_t samples = data.samples_per_epoch;
  if (samples == 0 || samples >= batch) return;
  problems.add(written_at(tree, {"data", "samples_per_epoch"}), "/data/samples_per_epoch",
               fmt::format("{} are less than a step's {}", samples, batch),
               "use more, a smaller batch, or 0 for as many as the set has");
}

std::vector<std::pair<std::string, const Source*>> held_out(const Data& data) {
  return list_held_out<const Source>(data);
}
std::vector<std::pair<std::string, Source*>> held_out(Data& data) {
  return list_held_out<Source>(data);
}

const std::string* find_shard(const Data& data,
                              const std::function<bool(const std::string&)>& is_so) {
  if (const std::string* const found = find_shard(data.train, is_so)) return found;
  for (const auto& [name, source] : held_out(data)) {
    if (const std::string* const found = find_shard(*source, is_so)) return found;
  }
  return nullptr;
}

void check_lanes(std::int64_t lanes, int readers) {
  if (lanes % readers == 0) return;
  throw core::RecipeError("/data/lanes",
                          fmt::format("{} is not a multiple of the {} ranks", lanes, readers),
                          "change one of them; another number of lanes is another order");
}

}  // namespace scaletrain::recipe
