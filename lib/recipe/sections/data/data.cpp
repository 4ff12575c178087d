#include "lib/recipe/sections/data/data.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/url.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/schema/object_map.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kExtraPrefix = "extra/";
constexpr const char* kSearched = "auto";  // number of loader threads

TypePtr bad_samples(BadSamples& value) {
  auto keys = std::make_unique<Object>();
  keys->add("policy",
            choice(value.policy,
                   {{"fail", "Ends the run (exit code 65)."},
                    {"skip",
                     "Replaces the image by another sample and lists it in RUN/bad_samples."}}),
            "Action for an image that cannot be decoded. Default: fail.")
      .add("max_rate", number(value.max_rate, from(0).to(1)),
           "Maximum share of skipped samples. A larger share ends the run; fewer than 1,000 "
           "samples count as 1,000. Default: 0.01, one percent.")
      .set_short_for("policy");
  return keys;
}

// A number of threads, or "auto".
class ThreadsOrAuto : public Type {
 public:
  explicit ThreadsOrAuto(Data& value)
      : value_(value), number_(integer(value.threads, from(0).to(1024))) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const word = node.text();
    value_.search_threads = word != nullptr && *word == kSearched;
    if (value_.search_threads) {
      value_.threads = 0;
    } else if (word == nullptr) {
      number_->read(node, pointer, problems);
    } else {
      problems.add(node, pointer, in_quotes(*word) + " is no number of threads", "use " + phrase());
    }
  }
  Json write() const override { return value_.search_threads ? Json(kSearched) : number_->write(); }
  Json schema() const override { return {{"anyOf", {number_->schema(), {{"const", kSearched}}}}}; }
  std::string phrase() const override { return number_->phrase() + R"(, or "auto")"; }

 private:
  Data& value_;
  TypePtr number_;
};

TypePtr label(Label& value) {
  auto keys = std::make_unique<Object>();
  keys->add("field", text(value.field, "a name as cls, json or folder"),
            "Extension of the shard member that holds the label, for example json; or \"folder\", "
            "the last folder in the sample's key. Default: cls.")
      .add("key", text(value.key, "a key of the JSON object in the field"),
           "Key of the label in a JSON field, for example \"label\". Default: the field is the "
           "label itself.")
      .set_short_for("field");
  return keys;
}

TypePtr normalize(Normalize& value) {
  auto keys = std::make_unique<Object>();
  keys->add("mean", numbers(value.mean, 3, from(0).to(1)),
            "Mean of red, green and blue, of pixel values from 0 to 1. Default: ImageNet's.")
      .add("std", numbers(value.std, 3, above(0).to(10)),
           "Standard deviation of red, green and blue, of pixel values from 0 to 1. Default: "
           "ImageNet's.");
  return keys;
}

TypePtr cache(std::optional<Cache>& value) {
  return optional(value, [](Cache& inner) {
    auto keys = std::make_unique<Object>();
    keys->require("folder", path(inner.folder),
                  "Cache folder on a local disk or tmpfs of each node. Several jobs may share it.")
        .require("max_bytes", integer(inner.max_bytes, from(1 << 20).to(9007199254740991.0)),
                 "Maximum size of the cache in bytes, for example 500000000000. The least recently "
                 "used shards are deleted beyond it.");
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

// The output of a command and compressed files can only be read from the front; a cached copy can
// be read anywhere.
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

// The lanes divide a source's limited samples, except a balanced source, which is not divided into
// lanes.
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
               "does not go with \"folder\", which is not a field", "leave it out");
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
  keys->require("train", describe_train(value.train),
                "Training data: shards, a folder, token files or a mixture.")
      .add("val", describe_held_out(value.val),
           "Validation data, evaluated during training; it selects the best checkpoint. Default: "
           "none.")
      .add("test", describe_held_out(value.test),
           "Test data, evaluated once at the end of training. Default: none.")
      .add("extra", object_map<Source>(value.extra, describe_held_out),
           "Additional validation sets by name, with the keys of data.val, evaluated at each "
           "validation. For example {\"hard\": {\"shards\": \"hard.tar\"}}.")
      .add("image_size", integer(value.image_size, from(8).to(4096)),
           "Height and width of the model's input images, in pixels. Default: 224.")
      .add("resize_ramp", describe(value.resize_ramp),
           "Progressive resizing: training images start smaller and grow to image_size. Validation "
           "always uses image_size. Default: off.")
      .add("eval_resize", integer(value.eval_resize, from(0).to(8192)),
           "Resizes the shorter side of validation images to this many pixels before the center "
           "crop of image_size. Default: 0, image_size. For example 256 with image_size 224.")
      .add("eval_filter",
           choice(value.eval_filter, {{"bilinear", "Bilinear interpolation."},
                                      {"bicubic", "Bicubic interpolation, as most timm models."}}),
           "Interpolation for resizing validation images, always with antialiasing. Default: "
           "bilinear.")
      .add("context", integer(value.context, from(0).to(1 << 24)),
           "Sequence length of a language model's samples (block_size, max_seq_length), in tokens. "
           "Default: 0, the model's `positions`.")
      .add("token_bytes", integer(value.token_bytes, from(0).to(4)),
           "Bytes per token in a .bin file without header: 2 (uint16) or 4 (uint32). Default: 0, "
           "as its card.json or .idx says, otherwise 2. Needed for a vocab_size above 65536.")
      .add("document_attention", flag(value.document_attention),
           "Document masking: attention does not cross document boundaries within a sequence. "
           "Default: false. Documents end at the end-of-text token that card.json names.")
      .add("threads", std::make_unique<ThreadsOrAuto>(value),
           "Threads of each rank that read and decode samples (num_workers of a DataLoader). "
           "Default: 0, the node's cores divided by its ranks, at most 16. \"auto\" starts with "
           "that and searches for the best number while training runs.")
      .add("prefetch", integer(value.prefetch, from(1).to(1024)),
           "Micro-batches that each rank reads and decodes ahead of training. Default: 4. More "
           "takes more host memory.")
      .add("shuffle_shards", integer(value.shuffle_shards, from(0).to(kMostCount)),
           "Shuffle window: samples are shuffled within groups of this many shards. Default: 0, "
           "all shards if indexed, one shard if streamed.")
      .add("order",
           choice(value.order,
                  {{"indexed", "Random access: samples of all shards are shuffled together."},
                   {"streamed",
                    "Sequential reading, as WebDataset: each rank streams its own shards, for "
                    "example from an object store."}}),
           "Order in which samples are read. Default: indexed.")
      .add("lanes", integer(value.lanes, from(1).to(65536)),
           "Number of streams that share the shards in the streamed order, a multiple of the "
           "data-parallel ranks. Default: 64. The sample order depends on it, not on the ranks.")
      .add("samples_per_epoch", integer(value.samples_per_epoch, from(0).to(1e15)),
           "Epoch length in samples. Default: 0, the size of the training set.")
      .add("bad_samples", bad_samples(value.bad_samples),
           "Handling of images that cannot be decoded. Default: they end the run.")
      .add("index_cache", path(value.index_cache),
           "Folder for the indexes of shards, which list their samples. Default: beside each "
           "shard, if that folder is writable.")
      .add("cache", cache(value.cache),
           "Cache of remote shards on a local disk. Default: off; samples are read from the server "
           "each time.")
      .add("normalize", normalize(value.normalize),
           "Input normalization: (pixel - mean) / std of each channel.")
      .add(
          "exif_orientation", flag(value.exif_orientation),
          "Rotates images by their EXIF orientation. Default: false, as torchvision's ImageFolder.")
      .add("jpeg",
           choice(value.jpeg,
                  {{"strict", "Images with decoder warnings count as undecodable (bad_samples)."},
                   {"lenient", "Images with decoder warnings are used, counted and reported."}}),
           "Strictness of the JPEG decoder. Default: strict.")
      .add("max_pixels", integer(value.max_pixels, from(1).to(4e9)),
           "Maximum width x height of an image, in pixels; a larger one counts as undecodable "
           "(bad_samples). Default: 100000000.")
      .add("label", label(value.label),
           "Member or folder of a WebDataset shard that holds the label of a sample. Default: .cls "
           "members.")
      .add("label_format",
           choice(
               value.label_format,
               {{"auto", "`class_numbers`, but a list that could also be `multi_hot` is an error."},
                {"class_numbers", "Indices of the classes, for example [1, 4]."},
                {"multi_hot", "One 0 or 1 for each class, for example [0, 1, 0, 0, 1]."}}),
           "Encoding of labels that are lists, for multi-label tasks. Default: auto.");
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

// An epoch has fewer samples than a step; more ranks or gradient accumulation make it worse.
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
                          "change one of them; another number of lanes changes the data order");
}

}  // namespace scaletrain::recipe
