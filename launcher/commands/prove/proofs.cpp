#include "launcher/commands/prove/proofs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include "launcher/commands/prove/layouts.h"
#include "launcher/commands/prove/tolerances.h"
#include "lib/core/error.h"
#include "lib/recipe/ranks.h"

namespace scaletrain::launcher {
namespace {

using recipe::Recipe;

constexpr std::int64_t kSaveEvery = 2;  // steps between the checkpoints of a run that is killed

constexpr const char* kAsyncTiming =
    "asynchronous averaging depends on the order in which replicas finish";

struct ProofContext {
  const ShortRecipe& shortened;
  std::int64_t steps = 0;
  int most_ranks = 1;
  std::uint64_t seed = 0;
  std::vector<Proof>& proofs;

  const Recipe& recipe() const { return shortened.recipe; }
  SumOrder sums() const {
    return sum_order(recipe().precision.name, recipe::uses_batch_norm(recipe().model));
  }
};

// The recipe's own layout, with 2 model replicas if the ranks suffice.
Trial own_trial(const ProofContext& context) {
  const int copy = recipe::ranks_of_copy(context.recipe());
  const bool has_two =
      2 * copy <= context.most_ranks && refusal_of(context.recipe(), 2 * copy).empty();
  return {.recipe = context.recipe(), .ranks = has_two ? 2 * copy : copy};
}

void set_precision(const std::string& name, Recipe& recipe) {
  if (recipe.precision.name == name) return;
  recipe.precision.name = name;
  recipe.precision.options.clear();
}

// Plain data parallelism on one rank, without gradient compression, in a precision that shows more
// than the order of sums.
Trial plain_trial(const ProofContext& context) {
  Trial trial{.recipe = context.recipe(), .ranks = 1};
  trial.recipe.parallel = {};
  trial.recipe.compress.reset();
  set_precision(context.sums().precision, trial.recipe);
  return trial;
}

std::string missing_ranks(int needed, int most) {
  if (needed <= most) return "";
  return fmt::format("needs {} ranks, and there are {}: --nproc", needed, most);
}

// Adds a proof; it is not applicable if `reason` is not empty or a run of it is refused.
void add(const ProofContext& context, Proof proof, std::string reason) {
  for (const Trial* const trial : {&proof.first, &proof.second}) {
    if (reason.empty()) reason = missing_ranks(trial->ranks, context.most_ranks);
    if (reason.empty()) reason = refusal_of(trial->recipe, trial->ranks);
  }
  proof.not_applicable = std::move(reason);
  context.proofs.push_back(std::move(proof));
}

std::string timing_reason(const Recipe& recipe) {
  return recipe.sync.is_async() ? kAsyncTiming : "";
}

// Reason why losses depend on the number of data-parallel ranks; "": they do not.
std::string replica_reason(const Recipe& recipe) {
  if (recipe.sync.is_rare()) {
    return fmt::format("with sync {}, each replica trains on its own", recipe.sync.name);
  }
  const auto norm = recipe.model.options.find("norm");
  const bool is_synchronized =
      norm != recipe.model.options.end() && recipe.model.text("norm") == "sync_batch";
  return is_synchronized ? "batch statistics depend on the number of ranks" : "";
}

// Reason why losses depend on the size of a micro-batch; "": they do not.
std::string micro_batch_reason(const Recipe& recipe) {
  if (recipe::uses_batch_norm(recipe.model)) return "batch statistics depend on the micro-batch";
  for (const char* const rate : {"dropout", "drop_path"}) {
    if (recipe.model.options.contains(rate) && recipe.model.number(rate) > 0) {
      return fmt::format("{} is drawn for each micro-batch", rate);
    }
  }
  if (recipe.mix) return "mixup and cutmix are drawn for each micro-batch";
  if (recipe.model.options.contains("experts")) {
    return "the balance loss of a mixture depends on the micro-batch";
  }
  return "";
}

std::vector<PlannedKill> draw_kills(std::int64_t steps, int ranks, std::uint64_t seed) {
  constexpr int kKills = 2;
  std::mt19937_64 random(seed);
  std::vector<PlannedKill> kills;
  for (int i = 0; i < kKills; ++i) {
    const auto choices = static_cast<std::uint64_t>(steps - kSaveEvery);
    const std::int64_t step = kSaveEvery + 1 + static_cast<std::int64_t>(random() % choices);
    kills.push_back({.step = step, .rank = static_cast<int>(random() % ranks)});
  }
  std::ranges::sort(kills, {}, &PlannedKill::step);
  return kills;
}

void add_repetitions(const ProofContext& context) {
  const std::string reason = timing_reason(context.recipe());
  const Trial own = own_trial(context);
  add(context, {.group = "same", .name = "same", .first = own, .second = own}, reason);
  Trial killed = own;
  killed.recipe.checkpoint.every = {recipe::Duration::Unit::kSteps, double{kSaveEvery}};
  killed.kills = draw_kills(context.steps, killed.ranks, context.seed);
  add(context, {.group = "killed", .name = "killed", .first = own, .second = std::move(killed)},
      reason);
}

void add_ranks(const ProofContext& context) {
  const Trial alone = plain_trial(context);
  for (const int ranks : {2, 4}) {
    Trial several = alone;
    several.ranks = ranks;
    add(context,
        {.group = "ranks",
         .name = fmt::format("ranks-{}", ranks),
         .tolerance = context.sums().tolerance,
         .first = alone,
         .second = std::move(several)},
        replica_reason(context.recipe()));
  }
}

void add_accumulation(const ProofContext& context) {
  Proof proof{.group = "accumulation",
              .name = "accumulation",
              .tolerance = context.sums().tolerance,
              .first = plain_trial(context),
              .second = plain_trial(context)};
  const std::int64_t global = *context.recipe().batch.global;
  std::string reason = micro_batch_reason(context.recipe());
  if (reason.empty() && context.recipe().batch.per_device == global) {
    reason = fmt::format("the global batch of {} is one micro-batch already", global);
  }
  proof.second.recipe.batch.per_device = global;
  add(context, std::move(proof), std::move(reason));
}

void add_layouts(const ProofContext& context) {
  for (ProvenLayout& layout : proven_layouts()) {
    const bool has_replicas = layout.readers() > 1;
    Proof proof{.group = "layouts",
                .name = std::move(layout.name),
                .tolerance = context.sums().tolerance,
                .first = plain_trial(context),
                .second = plain_trial(context)};
    proof.second.ranks = layout.ranks;
    proof.second.recipe.parallel = std::move(layout.parallel);
    std::string reason = has_replicas ? replica_reason(context.recipe()) : "";
    if (reason.empty() && context.recipe().sync.is_rare()) reason = "sync needs replicas";
    add(context, std::move(proof), std::move(reason));
  }
}

// Exchanges the state of a technique: on if the recipe has it off, and off if it is on.
void flip_recomputation(Recipe& recipe) {
  const bool is_on = recipe.recompute && !recipe.recompute->is_none();
  recipe.recompute.reset();
  if (!is_on) recipe.recompute.emplace().units = "all";
}

void flip_offload(bool recipe::Offload::*what, Recipe& recipe) {
  recipe::Offload offload = recipe.offload.value_or(recipe::Offload());
  offload.*what = !(offload.*what);
  recipe.offload = offload;
}

void add_technique(const ProofContext& context, const char* name, double tolerance,
                   const std::function<void(Recipe&)>& flip) {
  Proof proof{.group = "techniques",
              .name = name,
              .tolerance = tolerance,
              .first = own_trial(context),
              .second = own_trial(context)};
  if (tolerance > kSameBits) {
    set_precision(context.sums().precision, proof.first.recipe);
    proof.second.recipe = proof.first.recipe;
  }
  flip(proof.second.recipe);
  add(context, std::move(proof), timing_reason(context.recipe()));
}

void add_compression(const ProofContext& context, const char* method) {
  Proof proof{.group = "techniques",
              .name = fmt::format("compress-{}", method),
              .tolerance = compression_tolerance(method),
              .first = own_trial(context),
              .second = own_trial(context)};
  proof.first.recipe.compress.reset();
  recipe::Compress compress = context.recipe().compress.value_or(recipe::Compress());
  compress.name = method;
  compress.warmup = 0;
  proof.second.recipe.compress = compress;
  std::string reason = timing_reason(context.recipe());
  if (reason.empty() && recipe::uses_batch_norm(context.recipe().model)) {
    reason = "batch statistics multiply the rounding of gradients in each step";
  }
  if (reason.empty() && proof.first.ranks == 1) reason = "one rank sends no gradients";
  add(context, std::move(proof), std::move(reason));
}

void add_techniques(const ProofContext& context) {
  add_technique(context, "recompute", kSameBits, flip_recomputation);
  add_technique(context, "offload-activations", kSameBits,
                [](Recipe& recipe) { flip_offload(&recipe::Offload::activations, recipe); });
  add_technique(context, "offload-optimizer", context.sums().tolerance,
                [](Recipe& recipe) { flip_offload(&recipe::Offload::optimizer, recipe); });
  for (const char* const method : {"bf16", "fp16", "int8", "powersgd", "onebit"}) {
    add_compression(context, method);
  }
}

void add_loader_threads(const ProofContext& context) {
  for (const int threads : {1, 3}) {
    Proof proof{.group = "loader",
                .name = fmt::format("loader-threads-{}", threads),
                .first = own_trial(context),
                .second = own_trial(context)};
    proof.second.recipe.data.threads = threads;
    proof.second.recipe.data.prefetch = threads;
    add(context, std::move(proof), timing_reason(context.recipe()));
  }
}

}  // namespace

std::vector<Proof> proofs(const ShortRecipe& shortened, std::int64_t steps, int most_ranks,
                          std::uint64_t seed) {
  std::vector<Proof> result;
  const ProofContext context{.shortened = shortened,
                             .steps = steps,
                             .most_ranks = most_ranks,
                             .seed = seed,
                             .proofs = result};
  add_repetitions(context);
  add_ranks(context);
  add_accumulation(context);
  add_layouts(context);
  add_techniques(context);
  add_loader_threads(context);
  return result;
}

std::vector<Proof> select_proofs(std::vector<Proof> all, const std::vector<std::string>& only) {
  if (only.empty()) return all;
  std::set<std::string> known;
  for (const Proof& proof : all) known.insert({proof.group, proof.name});
  for (const std::string& name : only) {
    if (known.contains(name)) continue;
    throw core::UsageError("--only", fmt::format("\"{}\" is not a proof", name),
                           fmt::format("use some of: {}", fmt::join(known, ", ")));
  }
  std::erase_if(all, [&](const Proof& proof) {
    return std::ranges::none_of(
        only, [&](const std::string& name) { return name == proof.group || name == proof.name; });
  });
  return all;
}

}  // namespace scaletrain::launcher
