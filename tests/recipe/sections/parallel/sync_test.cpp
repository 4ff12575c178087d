#include "lib/recipe/sections/parallel/sync.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("sync is a name; the steps follow from it") {
  const auto sync = [](const std::string& change) {
    return parse_recipe(minimal_recipe(), "r.json", {change}).sync;
  };
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").sync.is_rare());
  CHECK(sync("sync=every_step").steps == 1);
  CHECK(sync("sync=periodic").steps == 8);
  CHECK(sync("sync=diloco").steps == 100);
  CHECK(sync("sync=diloco").outer.lr == 0.7);
  CHECK(sync("sync=diloco").outer.momentum == 0.9);
  CHECK(sync("sync=diloco").fragments == 1);
  const Sync keyed = sync(R"(sync={"name": "diloco", "steps": 50, "fragments": 4,
                                   "outer": {"lr": 0.5, "momentum": 0.8}})");
  CHECK(keyed.steps == 50);
  CHECK(keyed.fragments == 4);
  CHECK(keyed.outer.lr == 0.5);
  CHECK(keyed.outer.momentum == 0.8);
  CHECK(keyed.overlap == 0);
  const Sync late = sync(R"(sync={"name": "diloco", "fragments": 4, "overlap": 24})");
  CHECK(late.overlap == 24);
  CHECK(late.mix == 0.5);
  CHECK(sync("sync=async").steps == 8);
  CHECK(sync("sync=async").staleness == 4);
  CHECK(sync(R"(sync={"name": "async", "steps": 3, "staleness": 0})").staleness == 0);
  for (const std::string name : {"every_step", "periodic", "diloco", "async"}) {
    const Recipe one = parse_recipe(minimal_recipe(), "r.json", {"sync=" + name});
    const Recipe again = parse_recipe(to_json(one), "r.json");
    CHECK(differing_keys(one, again).empty());
  }
  CHECK(error_of(minimal_recipe(), {"sync=seldom"}) ==
        "--set sync: /sync/name: \"seldom\" is not a choice here\n"
        "  use one of: \"every_step\", \"periodic\", \"diloco\", \"async\"");
}

TEST_CASE("replicas that train alone exclude what has one state for all of them") {
  const std::string rare = R"(sync={"name": "periodic", "steps": 4})";
  const auto found = [&](const std::string& change) {
    const std::string text = error_of(minimal_recipe(), {rare, change});
    return text.substr(0, text.find('\n'));
  };
  const std::string at = "--set sync: ";
  CHECK(found("sam={}") ==
        at + "sam needs gradients averaged over all replicas, and each replica has its own");
  CHECK(found("ema={}") == at + "ema would be the mean of one replica's weights");
  CHECK(found(R"(swa={"start": {"epochs": 5}})") ==
        at + "swa would be the mean of one replica's weights");
  CHECK(found("precision=bf16_pure") ==
        at + "the mean of bf16 weights loses the small changes of a few steps");
  CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json", {"precision=fp64", "sync=diloco"}));
  CHECK(error_of(minimal_recipe(), {"precision=fp64", "sync=async"}) ==
        at +
            "replicas communicate fp32 weights through rank 0\n  use fp32 as precision, or diloco");
  CHECK(found("optimizer.name=schedule_free_adamw") ==
        at + "schedule_free_adamw keeps weights in its state, which are not synchronized");
  CHECK(found("offload.optimizer=true") ==
        at + "an offloaded optimizer has its own copy of the weights, which is not synchronized");
  CHECK(found("checkpoint.writers=all") ==
        at + "each replica has its own optimizer state, and checkpoint.writers is for state that "
             "all ranks share");
  CHECK(error_of(minimal_recipe(), {R"(sync={"name": "diloco", "steps": 3, "fragments": 4})"}) ==
        at + "4 fragments are synchronized at different steps, and there are 3 between two "
             "synchronizations\n"
             "  use more steps, or fewer fragments");
  CHECK(
      error_of(minimal_recipe(), {R"(sync={"name": "diloco", "steps": 10, "fragments": 4,
                                             "overlap": 2})"}) ==
      at + "an overlap of 2 steps would not be over when the next synchronization begins, 2 later\n"
           "  use less overlap, more steps, or fewer fragments");
}

TEST_CASE("decoupled replicas refuse sections that one replica would decide for all") {
  const auto found = [&](const std::vector<std::string>& changes) {
    const std::string text = error_of(minimal_recipe(), changes);
    return text.substr(0, text.find('\n'));
  };
  const std::string at = "--set sync: ";
  CHECK(found({"sync=async", "early_stopping={}"}) ==
        at + "early_stopping would end rank 0 alone, which validates");
  CHECK(found({"sync=async", "schedule.plateau={}"}) ==
        at + "a plateau would lower the learning rate of rank 0 alone, which validates");
  CHECK(found({"sync=async", "data.order=streamed"}) ==
        at + "the streamed order counts samples over all replicas, and decoupled replicas share no "
             "collective");
  CHECK(found({"sync=async",
               "batch={\"global\": 32, \"per_device\": 4, \"ramp\": {\"start\": 8, "
               "\"increment\": 8, \"samples\": 960}}"}) ==
        at + "replicas at different steps would have batches of different sizes");
  CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json", {"sync=periodic", "early_stopping={}"}));
}

TEST_CASE("replicas of several ranks exchange in each way") {
  for (const char* const change : {"parallel.shard=2", "parallel.pipeline=2"}) {
    for (const char* const sync :
         {"periodic", R"({"name": "diloco", "steps": 8, "fragments": 4})", "async"}) {
      CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json",
                                 {std::string("sync=") + sync, change, "batch.accumulate=2"}));
    }
  }
}

}  // namespace scaletrain::recipe
