// A model's tensors from weights of its own kind, by name: its source's, another program's, ours.
//
// Strict: every tensor of the model and of the file has its counterpart, in the same shape and with
// finite values, but for what the recipe allows and what is listed at load_weights. Types may
// differ: floating values are converted to the model's type.
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

// Result of loading weights. Each list has names of the model's tensors; `unused` the file's.
struct WeightReport {
  std::vector<std::string> files;
  std::vector<std::string> taken;              // as they are
  std::map<std::string, std::string> adapted;  // and how
  std::vector<std::string> initial;            // new head: left as initialised
  std::vector<std::string> missing;            // left as initialised, as the recipe allows
  std::vector<std::string> unused;             // as the recipe allows, and what no model needs
};

// "128 tensors taken, 1 adapted (pos_embed: 14x14 to 8x8 patches), 2 left as initialised
// (head.bias, head.weight), 0 missing, 0 unused"
std::string summary(const WeightReport& report);
// Everything of it, as a JSON object in lines.
std::string to_json(const WeightReport& report);

// Fills `tensors`, those of a model with `rules`, after everything was compared.
//
// A common prefix of wrappers (lib/format/weights/wrapper_names.h) is left out where the rest are
// the model's names, and one log line says so; each name may also have, or lack, "module.",
// "_orig_mod.", "model." and "transformer."; a tensor that the file has twice must be the same. The
// head is left as initialised where the file's has another number of classes, or the recipe says
// so; the first kernel, the positions of patches (lib/checkpoint/adapt.h) and of texts, of which
// the first are taken, are made to fit. The heads that a config.json beside the file or a
// checkpoint's recipe gives must be the model's. Counts of batches may be missing; masks and
// frequencies that Hugging Face stores may be left. Throws core::RecipeError for a new head of a
// model without one; core::CheckpointError for a LoRA adapter, naming the first tensors of each
// kind that do not fit, and as format::WeightSet does.
//
// `check` sees the files first, and throws where they are of another model.
using CheckFiles = std::function<void(const format::WeightFiles& files)>;
WeightReport load_weights(
    const recipe::Weights& weights, const units::WeightRules& rules, const Tensors& tensors,
    const Progress& progress = [] {}, const CheckFiles& check = [](const auto&) {});

}  // namespace scaletrain::checkpoint
