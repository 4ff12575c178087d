// Changes of a recipe that `scaletrain plan` compares: single techniques, and whole layouts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/plan/prediction.h"

namespace scaletrain::launcher {

struct Variant {
  std::string name;
  std::vector<std::string> overrides;  // as --set takes them
};

struct RankedVariant {
  Variant variant;
  Prediction prediction;
};

// Techniques that save memory or time (lib/recipe/techniques.h), without the recipe as it is.
std::vector<Variant> technique_variants(const recipe::Recipe& recipe, int ranks);

// Layouts of `ranks` ranks, with `nproc` on a node, that the recipe accepts on them: tensor,
// context and expert parallel within a node, pipelines, levels of sharding, activation
// checkpointing and CPU offload. Layouts with less communication come first.
std::vector<Variant> layout_variants(const recipe::Recipe& recipe, int ranks, int nproc);

// Predicts one variant; nullopt if it is refused.
using PredictVariant = std::function<std::optional<Prediction>(const Variant&)>;

// Predicts `variants`, at most `most` of them, and returns those that improve on `base`: all that
// fit if it does not fit itself, otherwise those that fit and are faster. The fastest come first.
std::vector<RankedVariant> rank_variants(const std::vector<Variant>& variants,
                                         const Prediction& base, std::size_t most,
                                         const PredictVariant& predict_variant);

}  // namespace scaletrain::launcher
