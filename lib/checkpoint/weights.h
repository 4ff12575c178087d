// Loads a model's weights by tensor name: from its original source, from another program or from
// scaletrain.
//
// Loading is strict: every tensor of the model and of the file has a counterpart with the same
// shape and finite values. Exceptions are what the recipe allows and what is listed at
// load_weights(). Floating-point values are converted to the model's dtype.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/checkpoint/tensors.h"
#include "lib/format/weights/weight_files.h"
#include "lib/recipe/sections/weights.h"
#include "lib/units/weight_rules.h"

namespace scaletrain::checkpoint {

// Result of loading weights. `unused` has names of tensors in the file, all other lists of the
// model's.
struct WeightReport {
  std::vector<std::string> files;
  std::vector<std::string> taken;              // loaded unchanged
  std::map<std::string, std::string> adapted;  // loaded with a change; value: the change
  std::vector<std::string> initial;            // new head: left as initialised
  std::vector<std::string> missing;            // left as initialised, as the recipe allows
  std::vector<std::string> unused;             // allowed by the recipe, or needed by no model
};

// "128 tensors taken, 1 adapted (pos_embed: 14x14 to 8x8 patches), 2 left as initialised
// (head.bias, head.weight), 0 missing, 0 unused"
std::string summary(const WeightReport& report);
// Returns the whole report as an indented JSON object.
std::string to_json(const WeightReport& report);

// Fills `tensors`, those of a model with `rules`, after all of them were compared.
//
// A common prefix of wrappers (lib/format/weights/wrapper_names.h) is removed if the rest are the
// model's names; one log line says so. Each name may also have or lack "module.", "_orig_mod.",
// "model." and "transformer.". A tensor that the file has twice must be equal both times. The head
// stays as initialised if the file has another number of classes or the recipe asks for it. The
// first convolution kernel and the position embeddings are adapted (lib/checkpoint/adapt.h); of
// position embeddings for text the first ones are taken. The number of attention heads in a
// config.json beside the file, or in a checkpoint's recipe, must match. Batch counters may be
// missing; masks and frequencies that Hugging Face stores are ignored. Throws core::RecipeError for
// a new head of a model without one, core::CheckpointError for a LoRA adapter or naming the first
// tensors of each kind that do not fit, and the errors of format::WeightSet.
//
// Called first; throws if the files belong to another model.
using CheckFiles = std::function<void(const format::WeightFiles& files)>;
WeightReport load_weights(
    const recipe::Weights& weights, const units::WeightRules& rules, const Tensors& tensors,
    const Progress& progress = [] {}, const CheckFiles& check = [](const auto&) {});

}  // namespace scaletrain::checkpoint
