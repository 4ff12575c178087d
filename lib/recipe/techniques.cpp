#include "lib/recipe/techniques.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "lib/core/error.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/recipe/load.h"
#include "lib/recipe/ranks.h"

namespace scaletrain::recipe {
namespace {

constexpr std::int64_t kChunks = 8;  // chunks of a micro-batch's tokens

Technique bf16() { return {"bf16", {"precision=bf16"}}; }

Technique recompute_all() { return {"recompute all", {"recompute=null", "recompute=all"}}; }

// `ordinal`: "2nd" for every second unit.
Technique recompute_every(int units, const char* ordinal) {
  return {fmt::format("recompute every {}", ordinal),
          {"recompute=null", fmt::format("recompute.every={}", units)}};
}

bool divides(std::int64_t times, const Batch& batch) {
  return !batch.is_automatic() && batch.per_device % times == 0;
}

// Divides the micro-batch by `times` and keeps the global batch by gradient accumulation.
Technique accumulate(const Batch& batch, std::int64_t times) {
  Technique result{fmt::format("accumulate x{}", times),
                   {fmt::format("batch.per_device={}", batch.per_device / times)}};
  if (!batch.global) {
    result.overrides.push_back(
        fmt::format("batch.accumulate={}", batch.accumulate.value_or(1) * times));
  }
  return result;
}

Technique chunks(const Recipe& recipe) {
  const std::int64_t tokens = recipe.batch.per_device * recipe.data.context;
  return {fmt::format("loss in {} chunks", kChunks),
          {fmt::format("loss.chunk={}", (tokens + kChunks - 1) / kChunks)}};
}

Technique offload_optimizer() { return {"offload optimizer", {"offload.optimizer=true"}}; }

// Shards the model over all `ranks` data-parallel ranks.
Technique shard(const char* level, int ranks) {
  return {fmt::format("shard {}", level),
          {"parallel.replica=null", fmt::format("parallel.shard={}", ranks),
           fmt::format("parallel.shard_level={}", level)}};
}

bool is_possible(const Recipe& recipe, const Technique& one) {
  try {
    parse_recipe(to_json(recipe), recipe.name, one.overrides, recipe.model.catalog);
    return true;
  } catch (const core::RecipeError&) {
    return false;
  }
}

Technique together(const std::vector<Technique>& parts) {
  Technique result;
  for (const Technique& part : parts) {
    result.name += (result.name.empty() ? "" : " + ") + part.name;
    result.overrides.insert(result.overrides.end(), part.overrides.begin(), part.overrides.end());
  }
  return result;
}

}  // namespace

std::vector<Technique> techniques(const Recipe& recipe, int world_size) {
  const core::MeshSizes mesh = recipe.parallel.mesh();
  const int ranks = world_size / (mesh.pipe * mesh.context * mesh.tensor);
  std::vector<Technique> all{{"as it is", {}},
                             bf16(),
                             recompute_all(),
                             recompute_every(2, "2nd"),
                             recompute_every(3, "3rd")};
  for (const std::int64_t times : {2, 4}) {
    if (divides(times, recipe.batch)) all.push_back(accumulate(recipe.batch, times));
  }
  const bool has_tokens = reads_tokens(recipe.model) && !recipe.batch.is_automatic();
  if (has_tokens) all.push_back(chunks(recipe));
  all.push_back({"offload activations", {"offload.activations=true"}});
  all.push_back(offload_optimizer());
  for (const char* const level : {"optimizer", "gradients", "parameters"}) {
    if (ranks > 1) all.push_back(shard(level, ranks));
  }
  if (ranks > 1) {
    all.push_back(together({shard("parameters", ranks), offload_optimizer()}));
    all.push_back(
        together({shard("parameters", ranks),
                  {"offload parameters", {"offload.optimizer=true", "offload.parameters=true"}}}));
  }
  all.push_back(together({bf16(), recompute_every(2, "2nd")}));
  std::vector<Technique> least{bf16(), recompute_all()};
  all.push_back(together(least));
  if (has_tokens) {
    least.push_back(chunks(recipe));
    all.push_back(together(least));
  }
  if (divides(4, recipe.batch)) {
    least.push_back(accumulate(recipe.batch, 4));
    all.push_back(together(least));
  }

  const std::string text = to_json(recipe);
  std::vector<std::string> seen;
  std::erase_if(all, [&](const Technique& one) {
    try {
      const Recipe changed = parse_recipe(text, recipe.name, one.overrides, recipe.model.catalog);
      plan_batch(changed, world_size);
      seen.push_back(to_json(changed));
    } catch (const core::RecipeError&) {
      return true;
    }
    return std::count(seen.begin(), seen.end(), seen.back()) > 1;
  });
  return all;
}

std::optional<Technique> half_of_activations(const Recipe& recipe, std::int64_t activation_bytes) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  const std::int64_t budget = activation_bytes / 2 / kMegabyte;
  Technique one{fmt::format("recompute to {} MB", budget),
                {"recompute=null", fmt::format("recompute.budget_mb={}", budget)}};
  if (budget < 1 || !is_possible(recipe, one)) return std::nullopt;
  return one;
}

}  // namespace scaletrain::recipe
