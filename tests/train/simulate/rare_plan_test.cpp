// What is planned of replicas that train alone for some steps.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/train/simulate/job_plan.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/train/simulate/plan_cases.h"

namespace scaletrain::train {
namespace {

using testing::experts;
using testing::kGpt2;
using testing::kMixtral;
using testing::shards;

recipe::Recipe recipe_of_rare(const recipe::Parallel& parallel) {
  recipe::Recipe recipe = parallel.expert > 1 ? testing::recipe_of_model("mixtral", kMixtral)
                                              : testing::recipe_of_model("gpt2", kGpt2);
  recipe::choose(recipe.optimizer, *recipe::optimizers().find("adamw"));
  recipe.data.context = 8;
  recipe.batch.per_device = 2;
  recipe.batch.accumulate = 1;
  recipe.batch.global.reset();
  recipe.parallel = parallel;
  recipe.sync = {.name = "periodic", .steps = 4};
  return recipe;
}

std::int64_t bytes_of(const JobPlan& job) {
  std::int64_t bytes = 0;
  for (const Traffic& one : job.ranks.front().traffic) bytes += one.bytes;
  return bytes;
}

TEST_CASE("replicas that train alone exchange weights in place of gradients") {
  const auto lines = [](const recipe::Parallel& parallel, int ranks) {
    return testing::run_ranks(
               {.world_size = 1, .limit_s = 300},
               [&](const auto&) {
                 at::set_num_threads(1);
                 recipe::Recipe recipe = recipe_of_rare(parallel);
                 const JobPlan job = plan_job(recipe, ranks, nn::built_in_factories(), {0});
                 const RankPlan& rank = job.ranks.front();
                 recipe.sync.name = "diloco";
                 const JobPlan outer = plan_job(recipe, ranks, nn::built_in_factories(), {0});
                 const std::int64_t more = outer.ranks.front().optimizer - rank.optimizer;
                 recipe.compress = recipe::Compress{.name = "bf16"};
                 const JobPlan rounded = plan_job(recipe, ranks, nn::built_in_factories(), {0});
                 const std::int64_t less = bytes_of(outer) - bytes_of(rounded);
                 std::string text =
                     more == 2 * rank.gradients ? "" : "no outer weights and momentum; ";
                 if (less != rank.gradients / 4 / 2) text += "not in half the bytes; ";
                 for (const Traffic& one : rank.traffic) {
                   const bool is_of_experts = one.axis == "expert" && one.what == "gradients";
                   if (one.axis != "replica" && one.axis != "context" && !is_of_experts) continue;
                   const bool is_share = one.bytes == rank.gradients / 4;
                   text += fmt::format("{} {} of {}{}; ", one.axis, one.what,
                                       fmt::join(one.ranks, " "), is_share ? ", a fourth" : "");
                 }
                 return text;
               })[0]
        .text;
  };
  recipe::Parallel context;
  context.context = 2;
  const std::string weights = "replica weights of 0 2, a fourth; ";
  CHECK(lines({}, 2) == "replica weights of 0 1, a fourth; ");
  CHECK(lines(shards(2, "parameters"), 4) == weights);
  CHECK(lines(shards(2, "optimizer"), 4) == weights);
  CHECK(lines(context, 4) ==
        "context gradients of 0 1; " + weights + "context keys and values of 0 1; ");
  CHECK(lines(experts(2), 4) == "expert gradients of 0 1; " + weights);
  CHECK(lines(experts(4, shards(2, "gradients")), 8) ==
        "expert gradients of 0 2; replica weights of 0 4, a fourth; ");
  CHECK(lines(experts(2, context), 8) ==
        "expert gradients of 0 1 2 3; context gradients of 0 1; replica weights of 0 4, a fourth; "
        "context keys and values of 0 1; context sums of the router of 0 1; ");
}

}  // namespace
}  // namespace scaletrain::train
