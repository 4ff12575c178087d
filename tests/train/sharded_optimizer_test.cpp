#include "lib/train/sharded_optimizer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/train/build.h"
#include "lib/train/held.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

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
          bool is_told = true;  // whoever saves
          const auto cut = cut_of(*run);
          for (const std::string& name : run->learner.optimizer->with_owner()) {
            is_told = is_told && cut && cut->parts.at(name).has_owner;
          }
          return fmt::format("{} owned, {} parts{}", run->learner.optimizer->with_owner().size(),
                             shards_of(*run).parts.size(), is_told ? "" : ", not told");
        });
    for (const auto& result : results) CHECK(result.text == results[0].text);
    return results[0].text;
  };
  const std::string lamb = R"(optimizer={"name": "lamb", "lr": 0.1})";
  // Two layers' weights and biases.
  CHECK(said(lamb, 2) == "4 owned, 4 parts");
  CHECK(said(R"(optimizer={"name": "adamw", "lr": 0.1})", 2) == "0 owned, 4 parts");
  CHECK(said(lamb, 1) == "0 owned, 0 parts");
}

}  // namespace scaletrain::train
