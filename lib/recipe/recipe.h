// The typed recipe: what a person wrote, with defaults, checked, paths absolute.
//
// Made by load_recipe (lib/recipe/load.h) and trusted from then on. Key names of the JSON are the
// member names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace scaletrain::recipe {

// A length of training: {"steps": n}, {"epochs": n} or {"minutes": n}. Steps are optimizer steps;
// epochs may be fractional.
struct Duration {
  enum class Unit { kSteps, kEpochs, kMinutes };
  Unit unit = Unit::kSteps;
  double value = 0;
};

// A thing chosen by name, with the keys that its row in the list (models.def, ...) declares. After
// loading, every declared key is present.
class Component {
 public:
  using Value = std::variant<std::int64_t, double, bool, std::string>;

  std::string name;
  std::map<std::string, Value> options;

  // The value of a declared key; std::logic_error for an undeclared one or another type.
  std::int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool flag(const std::string& key) const;
  const std::string& text(const std::string& key) const;
};

struct Model : Component {
  std::int64_t num_classes = 0;  // required for classifiers
};

// Samples that stay in memory once they were read (lib/data/kept_set.h).
struct SampleCache {
  std::string name = "memory";
  std::int64_t max_bytes = 1 << 30;  // of a rank
};

// Where samples come from: exactly one of shards, folder and, for train, sources.
struct Source {
  std::vector<std::string> shards;    // brace-expanded; absolute paths and URLs
  std::string folder;                 // one sub-folder per class, absolute
  std::optional<std::int64_t> limit;  // at most so many of its samples, always the same ones
  std::optional<SampleCache> cache;
  // train only
  std::vector<Source> sources;     // mixed by weight
  bool balanced = false;           // every class as often as every other
  double weight = 1;               // of one of `sources`
  std::vector<Component> augment;  // transforms.def
  std::int64_t repeats = 1;        // of each sample in a global batch (lib/data/repeated_order.h)
};

// What a training set's images that do not decode lead to.
struct BadSamples {
  std::string policy = "fail";  // "fail", "skip"
  double max_rate = 0.01;       // of the samples; more of them end the run
};

struct Normalize {
  std::vector<double> mean{0.485, 0.456, 0.406};  // of values 0..1, per channel RGB
  std::vector<double> std{0.229, 0.224, 0.225};
};

// Remote shards as files of this node (lib/storage/cache.h).
struct Cache {
  std::string folder;
  std::int64_t max_bytes = 0;
};

struct Data {
  Source train;
  std::optional<Source> val, test;
  std::int64_t image_size = 224;         // height and width of a sample for the model
  std::int64_t eval_resize = 0;          // shorter side before the centre is cut out; 0: image_size
  std::string eval_filter = "bilinear";  // "bicubic"
  std::int64_t threads = 0;              // decoding threads per rank; 0: automatic
  std::int64_t prefetch = 4;             // batches read ahead
  std::int64_t shuffle_shards = 0;     // samples are permuted within groups of so many; 0: over all
  std::string order = "indexed";       // "indexed", "streamed"
  std::int64_t lanes = 64;             // of the streamed order
  std::int64_t samples_per_epoch = 0;  // 0: as many as the set has
  BadSamples bad_samples;
  std::string index_cache;  // folder for shard indexes; "": beside the shard where writable
  std::optional<Cache> cache;
  Normalize normalize;
  bool exif_orientation = false;  // JPEGs are turned as EXIF says
};

struct Batch {
  std::int64_t per_device = 32;
  std::optional<std::int64_t> accumulate;  // either this
  std::optional<std::int64_t> global;      // or this
};

// One global batch, resolved for a number of ranks.
struct BatchPlan {
  std::int64_t per_device = 0, accumulate = 0, global = 0;
};

struct Optimizer : Component {
  double lr = 0;
  double weight_decay = 0;
  bool decay_norm_and_bias = false;           // weight decay for norms and biases too
  std::optional<std::int64_t> lr_base_batch;  // lr is multiplied by global batch / this
};

struct Schedule {
  std::optional<Duration> warmup;  // linear from lr / warmup_steps
  Component decay;                 // schedules.def: constant, cosine, step, polynomial
};

struct Clip {
  double norm = 0;  // global L2 norm of the gradients
};

struct Loss : Component {
  double label_smoothing = 0;
};

// Mixup and cutmix of the samples at positions 2i and 2i+1 (lib/input/mix.h).
struct Mix {
  double mixup = 0;           // alpha; 0: no mixup
  double cutmix = 0;          // alpha; 0: no cutmix
  double probability = 1;     // share of the pairs
  double cutmix_share = 0.5;  // of them, where both are asked for
};

struct Checkpoint {
  Duration every{Duration::Unit::kEpochs, 1};
  std::int64_t keep_last = 3;
  std::int64_t keep_best = 1;
};

// How remote data is reached (lib/storage/stores.h).
struct Storage {
  std::string endpoint;             // of s3://; "": from the environment, otherwise Amazon's
  std::string region;               // "": from the environment
  std::string addressing = "auto";  // "path", "virtual"; auto: path where an endpoint is named
  double connect_timeout_s = 10;
  double stall_timeout_s = 30;   // a transfer may be (nearly) still for so long
  double give_up_after_s = 300;  // for how long one request is tried again
};

struct Recipe {
  std::string name;
  std::uint64_t seed = 0;
  Model model;
  Data data;
  Batch batch;
  Duration length;  // the top-level "epochs" or "steps"
  Component precision;
  Optimizer optimizer;
  Schedule schedule;
  Loss loss;
  std::optional<Mix> mix;
  std::optional<Clip> clip;
  Duration validate_every{Duration::Unit::kEpochs, 1};
  Checkpoint checkpoint;
  Storage storage;
  Duration log_every{Duration::Unit::kSteps, 10};
  std::int64_t threads = 0;     // intra-op threads per rank; 0: cores / local ranks
  bool deterministic = false;   // on a GPU: deterministic kernels, so that a resume is bit for bit
  std::string device = "auto";  // "auto", "cpu", "cuda"
  std::string output;           // the run's folder, absolute
};

// The plan for `world_size` ranks. Throws core::RecipeError ("/batch/global: ...") where the global
// batch is not a multiple of per_device * world_size, naming the nearest sizes that would fit.
BatchPlan plan_batch(const Batch& batch, int world_size);

// Throws core::RecipeError where the lanes of the streamed order cannot be shared among the ranks.
void check_lanes(std::int64_t lanes, int world_size);

}  // namespace scaletrain::recipe
