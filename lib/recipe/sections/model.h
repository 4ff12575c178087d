// Model to train.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/catalog.h"
#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/section.h"
#include "lib/recipe/sections/weights.h"

namespace scaletrain::recipe {

struct Model : Component {
  std::int64_t num_classes = 0;     // required for classifiers
  std::int64_t in_channels = 3;     // image channels: 3, or 1 for luma
  std::optional<Weights> weights;   // initial weights
  std::vector<std::string> freeze;  // patterns (lib/core/text/glob.h) of parameters not trained
  bool linear_probe = false;        // trains only the head
  CatalogPtr catalog = built_in_catalog();  // catalog of its row

  // Returns the row of the model's name.
  const Row& row() const { return *catalog->models.find(name); }
};

TypePtr describe(Model& value);

// Checks that images have 1 or 3 channels.
void check_channels(const Model& model, const Node& tree, Problems& problems);

// Returns the number of units; nullopt if the model's row does not give it and only its worker
// knows.
std::optional<std::int64_t> units_of(const Model& model);

// True if the model's samples are windows of tokens: it has a "vocab_size" and "positions".
bool reads_tokens(const Model& model);

// True if the model has BatchNorm, which keeps running statistics.
bool uses_batch_norm(const Model& model);

// An image size, and the recipe key that sets it.
struct WrittenSize {
  std::int64_t size = 0;
  const char* pointer = "/data/image_size";
};

// Checks images of this size against the rules of the model's row.
void check_image_size(const Model& model, WrittenSize images, const Node& tree, Problems& problems);

// Returns advice if BatchNorm sees a smaller batch than the one of a step; "" otherwise.
std::string batch_norm_advice(const Model& model, const BatchPlan& plan);

// True if its BatchNorm cannot compute a deviation from a single sample.
bool needs_two_samples(const Model& model, std::int64_t image_size);

// Checks the batch against BatchNorm, if the model has it.
void check_batch_norm(const Model& model, std::int64_t per_device, std::int64_t image_size,
                      const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
