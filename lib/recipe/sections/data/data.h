// Training data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/recipe/sections/data/resize_ramp.h"
#include "lib/recipe/sections/data/source.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Policy for training images that do not decode.
struct BadSamples {
  std::string policy = "fail";  // "fail", "skip"
  double max_rate = 0.01;       // share of the samples; a larger one ends the run
};

// Source of a sample's class in a shard.
struct Label {
  std::string field = "cls";  // suffix of the member's name; "folder": the key's folder
  std::string key;            // key in the field, a JSON object; "": the field is the label

  bool operator==(const Label&) const = default;
};

struct Normalize {
  std::vector<double> mean{0.485, 0.456, 0.406};  // for values 0..1, per channel RGB
  std::vector<double> std{0.229, 0.224, 0.225};
};

// Returns the normalization for `channels` channels: for one channel, the mean of the three, as
// timm's resolve_input_data_config.
Normalize for_channels(const Normalize& normalize, std::int64_t channels);

// Cache of remote shards on the node's disk (lib/storage/cache.h).
struct Cache {
  std::string folder;
  std::int64_t max_bytes = 0;
};

struct Data {
  Source train;
  std::optional<Source> val, test;
  std::map<std::string, Source> extra;    // further held-out sets
  std::int64_t image_size = 224;          // height and width of a sample for the model
  std::optional<ResizeRamp> resize_ramp;  // progressive resizing in training
  std::int64_t eval_resize = 0;           // shorter side before the centre crop; 0: image_size
  std::string eval_filter = "bilinear";   // "bicubic"
  std::int64_t context = 0;               // sequence length in tokens; 0: the model's positions
  std::int64_t token_bytes = 0;           // token size of a .bin without a header; 0: not given
  bool document_attention = false;        // tokens attend only to their own document
  std::int64_t threads = 0;               // decoding threads per rank; 0: automatic
  bool search_threads = false;            // "auto": `threads` and `prefetch` are found by a search
  std::int64_t prefetch = 4;              // batches read ahead
  std::int64_t shuffle_shards = 0;  // shards in a group within which samples are permuted; 0: all
  std::string order = "indexed";    // "indexed", "streamed"
  std::int64_t lanes = 64;          // lanes of the streamed order
  std::int64_t samples_per_epoch = 0;  // 0: size of the set
  BadSamples bad_samples;
  std::string index_cache;  // folder for shard indexes; "": beside the shard where writable
  std::optional<Cache> cache;
  Normalize normalize;
  bool exif_orientation = false;  // rotates images by their EXIF orientation
  std::string jpeg = "strict";    // "lenient": decodes JPEG files in spite of libjpeg's warnings
  std::int64_t max_pixels = 100'000'000;  // limit of a decoded image; larger ones are refused
  Label label;
  // How list labels are read: "auto", "class_numbers", "multi_hot".
  std::string label_format = "auto";
};

// Returns the held-out sets by name: "val", "test", "extra/NAME". /data/NAME points to each.
std::vector<std::pair<std::string, const Source*>> held_out(const Data& data);
std::vector<std::pair<std::string, Source*>> held_out(Data& data);

// Returns the first shard of all sources for which `is_so` is true; null if there is none.
const std::string* find_shard(const Data& data,
                              const std::function<bool(const std::string&)>& is_so);

// Throws core::RecipeError if the lanes of the streamed order cannot be divided among the
// data-parallel ranks.
void check_lanes(std::int64_t lanes, int readers);

TypePtr describe(Data& value);
void check(const Data& data, const Node& tree, Problems& problems);

// Checks that an epoch of `samples_per_epoch` has at least `batch` samples, those of one step.
void check_epoch(const Data& data, std::int64_t batch, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
