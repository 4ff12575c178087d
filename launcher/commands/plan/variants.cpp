#include "launcher/commands/plan/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/techniques.h"

namespace scaletrain::launcher {
namespace {

// Sizes of a layout; the data-parallel ranks that are left over are replicas.
struct Layout {
  int pipeline = 1, shard = 1, context = 1, tensor = 1, expert = 1;
  const char* level = "parameters";
  bool recomputes = false, offloads = false;

  int model_ranks() const { return pipeline * context * tensor; }
};

// 1 and the powers of two up to `most` that divide `ranks`.
std::vector<int> sizes_up_to(int most, int ranks) {
  std::vector<int> sizes;
  for (int size = 1; size <= most && ranks % size == 0; size *= 2) sizes.push_back(size);
  return sizes;
}

Variant variant_of(const Layout& layout) {
  std::vector<std::string> words;
  const auto add = [&words](int size, const char* name) {
    if (size > 1) words.push_back(fmt::format("{} {}", name, size));
  };
  add(layout.pipeline, "pipeline");
  add(layout.tensor, "tensor");
  add(layout.context, "context");
  add(layout.expert, "expert");
  if (layout.shard > 1) words.push_back(fmt::format("shard {} {}", layout.shard, layout.level));
  if (words.empty()) words.emplace_back("data parallel");
  if (layout.recomputes) words.emplace_back("recompute all");
  if (layout.offloads) words.emplace_back("offload optimizer");
  std::vector<std::string> overrides{"parallel.replica=null",
                                     fmt::format("parallel.pipeline={}", layout.pipeline),
                                     fmt::format("parallel.tensor={}", layout.tensor),
                                     fmt::format("parallel.context={}", layout.context),
                                     fmt::format("parallel.expert={}", layout.expert),
                                     fmt::format("parallel.shard={}", layout.shard)};
  if (layout.tensor == 1) overrides.emplace_back("parallel.sequence=false");
  if (layout.shard > 1) {
    overrides.push_back(fmt::format("parallel.shard_level={}", layout.level));
  }
  overrides.emplace_back("recompute=null");
  if (layout.recomputes) overrides.emplace_back("recompute=all");
  if (layout.offloads) overrides.emplace_back("offload.optimizer=true");
  return {.name = fmt::format("{}", fmt::join(words, ", ")), .overrides = std::move(overrides)};
}

// Ways to shard the data-parallel ranks that `layout` leaves: not at all, within a node, and all.
std::vector<Layout> with_shards(const Layout& layout, int ranks, int nproc) {
  std::vector<Layout> result{layout};
  const int readers = ranks / layout.model_ranks();
  const int inside = std::max(1, nproc / (layout.context * layout.tensor));
  std::vector<int> sizes{std::min(inside, readers)};
  if (readers != sizes[0]) sizes.push_back(readers);
  for (const int size : sizes) {
    if (size == 1 || readers % size != 0) continue;
    for (const char* const level : {"optimizer", "gradients", "parameters"}) {
      Layout one = layout;
      one.shard = size;
      one.level = level;
      result.push_back(one);
    }
  }
  return result;
}

std::vector<Layout> all_layouts(const recipe::Recipe& recipe, int ranks, int nproc) {
  const bool has_experts = recipe.model.options.contains("experts");
  const bool has_tokens = recipe::reads_tokens(recipe.model);
  std::vector<Layout> layouts;
  for (const int pipeline : sizes_up_to(ranks, ranks)) {
    for (const int tensor : sizes_up_to(nproc, nproc)) {
      const int inside = nproc / tensor;
      for (const int context : sizes_up_to(has_tokens ? inside : 1, inside)) {
        for (const int expert : sizes_up_to(has_experts ? nproc : 1, nproc)) {
          const Layout layout{
              .pipeline = pipeline, .context = context, .tensor = tensor, .expert = expert};
          if (ranks % layout.model_ranks() != 0) continue;
          for (const Layout& one : with_shards(layout, ranks, nproc)) layouts.push_back(one);
        }
      }
    }
  }
  return layouts;
}

// How much a layout communicates: layers that are divided most, then pipelines, then shards.
int effort(const Layout& layout) {
  constexpr int kLayers = 8, kPipeline = 4;
  const auto doublings = [](int size) {
    int count = 0;
    for (; size > 1; size /= 2) ++count;
    return count;
  };
  return kLayers *
             (doublings(layout.tensor) + doublings(layout.context) + doublings(layout.expert)) +
         kPipeline * doublings(layout.pipeline) + (layout.shard > 1 ? 1 : 0) +
         (layout.recomputes ? 1 : 0) + (layout.offloads ? 2 : 0);
}

bool is_accepted(const recipe::Recipe& recipe, const std::string& text, const Variant& variant,
                 int ranks) {
  try {
    const recipe::Recipe changed =
        recipe::parse_recipe(text, recipe.name, variant.overrides, recipe.model.catalog);
    recipe::plan_batch(changed, ranks);
    return true;
  } catch (const core::RecipeError&) {
    return false;
  }
}

}  // namespace

std::vector<Variant> technique_variants(const recipe::Recipe& recipe, int ranks) {
  std::vector<Variant> variants;
  for (recipe::Technique& one : recipe::techniques(recipe, ranks)) {
    if (one.overrides.empty()) continue;
    variants.push_back({.name = std::move(one.name), .overrides = std::move(one.overrides)});
  }
  return variants;
}

std::vector<Variant> layout_variants(const recipe::Recipe& recipe, int ranks, int nproc) {
  std::vector<Layout> layouts;
  for (Layout layout : all_layouts(recipe, ranks, nproc)) {
    for (const bool recomputes : {false, true}) {
      for (const bool offloads : {false, true}) {
        layout.recomputes = recomputes;
        layout.offloads = offloads;
        layouts.push_back(layout);
      }
    }
  }
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const Layout& a, const Layout& b) { return effort(a) < effort(b); });
  const std::string text = recipe::to_json(recipe);
  std::vector<Variant> variants;
  for (const Layout& layout : layouts) {
    Variant variant = variant_of(layout);
    if (is_accepted(recipe, text, variant, ranks)) variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<RankedVariant> rank_variants(const std::vector<Variant>& variants,
                                         const Prediction& base, std::size_t most,
                                         const PredictVariant& predict_variant) {
  std::vector<RankedVariant> ranked;
  std::size_t tried = 0;
  for (const Variant& variant : variants) {
    if (tried++ == most) break;
    std::optional<Prediction> prediction = predict_variant(variant);
    if (!prediction || !prediction->memory.fits()) continue;
    const bool is_faster = prediction->time.total() < base.time.total();
    if (base.memory.fits() && !is_faster) continue;
    ranked.push_back({.variant = variant, .prediction = *std::move(prediction)});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.prediction.time.total() < b.prediction.time.total();
  });
  return ranked;
}

}  // namespace scaletrain::launcher
