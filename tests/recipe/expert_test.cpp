#include "lib/recipe/expert.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

// A small mixture of six experts with these changes more.
std::vector<std::string> experts_changes(const std::vector<std::string>& more) {
  std::vector<std::string> changes{
      R"(data={"train": {"tokens": "a.bin"}, "context": 8})",
      R"(model={"name": "mixtral", "vocab_size": 11, "positions": 8, "dim": 24, "heads": 4,
                "experts": 6})"};
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::string experts_error(const std::vector<std::string>& changes) {
  return recipe::error_of(minimal_recipe(), changes);
}

}  // namespace

TEST_CASE("every rank has all experts unless ranks share them") {
  CHECK(parse_recipe(minimal_recipe(), "r.json").parallel.expert == 1);
  const Recipe recipe =
      parse_recipe(minimal_recipe(), "r.json", experts_changes({"parallel.expert=3"}));
  CHECK(recipe.parallel.mesh().expert == 3);
  CHECK(parse_recipe(to_json(recipe), "r.json").parallel.expert == 3);
  CHECK(experts_error(experts_changes({"parallel.expert=4", "parallel.shard=2"})).find("experts") !=
        std::string::npos);
}

TEST_CASE("numbers of ranks that cannot share the experts are reported with those that can") {
  CHECK(experts_error(experts_changes({"parallel.expert=4"})) ==
        "--set parallel.expert: 4 ranks cannot share 6 experts evenly\n"
        "  use one of: 1, 2, 3, 6");
  CHECK(experts_error(experts_changes({"parallel.expert=3", "parallel.shard=2"})) ==
        "--set parallel.expert: 3 ranks are not a multiple of \"shard\": 2\n"
        "  use one of: 1, 2, 6");
  CHECK(experts_error(experts_changes({"parallel.expert=6", "parallel.shard=2"})) == "no error");
}

TEST_CASE("a model without experts is refused") {
  CHECK(experts_error({"model.name=resnet18", "parallel.expert=2"}) ==
        "--set parallel.expert: resnet18 has no experts\n"
        "  leave it out, or use one of: " +
            models_where([](const Row& row) {
              return std::any_of(row.options.begin(), row.options.end(),
                                 [](const Option& option) { return option.key == "experts"; });
            }));
}

TEST_CASE("the other axes of a mesh go with it") {
  for (const char* const schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble"}) {
    CHECK(
        experts_error(experts_changes(
            {fmt::format(R"(parallel={{"expert": 2, "pipeline": 2, "schedule": "{}"}})", schedule),
             "batch.accumulate=4"})) == "no error");
  }
  CHECK(experts_error(experts_changes({R"(parallel={"expert": 2, "tensor": 2})"})) == "no error");
  CHECK(experts_error(experts_changes(
            {R"(parallel={"expert": 2, "tensor": 2, "sequence": true})"})) == "no error");
  CHECK(experts_error(experts_changes({R"(parallel={"expert": 2, "context": 2})"})) == "no error");
  CHECK(experts_error(experts_changes({R"(parallel={"expert": 2, "tensor": 3})"}))
            .find(R"(3 ranks cannot divide "heads" of the model)") != std::string::npos);
}

TEST_CASE("rarer and cheaper exchanges go with it, but for those that each rank has a part of") {
  const auto error = [](const std::string& change) {
    return experts_error(experts_changes({"parallel.expert=2", change}));
  };
  for (const char* const change :
       {"compress=bf16", "compress=fp16", "sync=periodic", "sync=diloco"}) {
    CHECK(error(change) == "no error");
  }
  for (const std::string name : {"int8", "onebit", "powersgd"}) {
    CHECK(error("compress=" + name) ==
          "--set compress: the error feedback of " + name +
              " would differ among the ranks of "
              "\"expert\": 2 for replicated parameters\n  use bf16 or fp16");
  }
  CHECK(error("sync=async") == "no error");
  CHECK(error("checkpoint.writers=rank_0") ==
        "--set checkpoint.writers: rank 0 has only a part of the experts with \"expert\": 2\n"
        "  use \"auto\": each rank writes its own part");
  CHECK(error(R"(optimizer={"name": "muon", "lr": 0.1})") == "no error");
}

}  // namespace scaletrain::recipe
