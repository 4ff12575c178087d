#include "lib/train/run/sharded_optimizer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/train/build/build.h"
#include "lib/train/run/state_shards.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {

TEST_CASE("tensors have owners where an optimizer looks at whole ones and ranks have parts") {
  const testing::TinyRun tiny;
  const auto said = [&](const std::string& optimizer, int ranks) {
    std::vector<std::string> overrides{optimizer};
    if (ranks > 1) overrides.push_back(fmt::format("parallel.shard={}", ranks));
    const recipe::Recipe recipe = tiny.recipe(overrides);
    const auto results =
        testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) -> std::string {
          const auto run = build_run(recipe, env, std::nullopt, {});
          bool is_described = true;  // to checkpoints
          const units::Shards shards_of_state =
              optimizer_shards(*run, model_shards(*run), /*outer=*/false);
          const auto is_elsewhere = [](const auto& one) { return !one.second.is_here(); };
          std::int64_t whole = 0;  // tensors of state that one rank holds for all
          if (std::ranges::any_of(run->learner.optimizer->state(), is_elsewhere)) {
            for (const auto& [name, shard] : shards_of_state) {
              if (name.find('/') == std::string::npos) continue;
              ++whole;
              is_described = is_described && (!shard.is_here() || shard.is_full());
            }
          }
          const optim::ShardedParameters shards = shards_of(*run);
          const at::Tensor ones = at::ones({2});
          if (shards.sum) shards.sum(ones);
          const std::string text = fmt::format("{} whole{}, {} parts on {:g}", whole,
                                               is_described ? "" : " and not described",
                                               shards.parts.size(), ones[1].item<double>());
          if (run->learner.optimizer->state().empty()) return "nothing to optimize";
          run->mesh->end("end");
          return text;
        });
    for (const auto& result : results) CHECK(result.text == results[0].text);
    return results[0].text;
  };
  const std::string lamb = R"(optimizer={"name": "lamb", "lr": 0.1})";
  // Two averages of two layers' weights and biases.
  CHECK(said(lamb, 2) == "8 whole, 4 parts on 2");
  CHECK(said(R"(optimizer={"name": "adamw", "lr": 0.1})", 2) == "0 whole, 4 parts on 2");
  CHECK(said(lamb, 1) == "0 whole, 0 parts on 1");
}

TEST_CASE("an optimizer that finds nothing that it is for is refused") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&]() -> std::string {
          build_run(tiny.recipe({R"(optimizer={"name": "muon", "lr": 0.1})"}), {}, {}, {});
          return "built";
        }) ==
        "/optimizer/name: no hidden layer has a matrix for muon to train\n"
        "  use adamw, or a model with more layers");
}

}  // namespace scaletrain::train
