#include "lib/recipe/context.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kLlama = R"(model={"name": "llama", "vocab_size": 11, "positions": 64,
                                         "dim": 32, "heads": 8, "kv_heads": 2})";

// A small model of windows of 24 tokens, with these changes more.
std::vector<std::string> context_changes(const std::vector<std::string>& more,
                                         const std::string& model = kLlama) {
  std::vector<std::string> changes{R"(data={"train": {"tokens": "a.bin"}, "context": 24})", model};
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::string context_error(const std::vector<std::string>& changes) {
  return recipe::error_of(minimal_recipe(), changes);
}

TEST_CASE("ranks share sequences where that is asked") {
  CHECK(parse_recipe(minimal_recipe(), "r.json").parallel.context == 1);
  const Recipe shared =
      parse_recipe(minimal_recipe(), "r.json", context_changes({"parallel.context=3"}));
  CHECK(shared.parallel.context == 3);
  CHECK(shared.parallel.mesh().context == 3);
  CHECK(parse_recipe(to_json(shared), "r.json").parallel.context == 3);
}

TEST_CASE("a sequence that twice as many ranks do not divide is refused with numbers that fit") {
  CHECK(
      context_error(context_changes({"parallel.context=5"})) ==
      "--set parallel.context: 5 ranks divide a sequence into 10 chunks, and /data/context is 24\n"
      "  use one of: 1, 2, 3, 4, 6, 12; or a context that is a multiple of 10");
  CHECK(
      context_error(context_changes({"parallel.context=8"})) ==
      "--set parallel.context: 8 ranks divide a sequence into 16 chunks, and /data/context is 24\n"
      "  use one of: 1, 2, 3, 4, 6, 12; or a context that is a multiple of 16");
  CHECK(context_error(context_changes({"parallel.context=12"})) == "no error");
}

TEST_CASE("without a context the model's positions are what ranks share") {
  const std::vector<std::string> changes{
      R"(data={"train": {"tokens": "a.bin"}})",
      R"(model={"name": "llama", "vocab_size": 11, "positions": 18, "dim": 32, "heads": 8})"};
  const auto error = [&](const char* ranks) {
    std::vector<std::string> all = changes;
    all.emplace_back(ranks);
    return context_error(all);
  };
  CHECK(error("parallel.context=3") == "no error");
  CHECK(error("parallel.context=4") ==
        "--set parallel.context: 4 ranks divide a sequence into 8 chunks, and /data/context is 18\n"
        "  use one of: 1, 3, 9; or a context that is a multiple of 8");
}

TEST_CASE("a model without sequences of tokens is refused") {
  CHECK(context_error({"model.name=resnet18", "parallel.context=2"}) ==
        "--set parallel.context: resnet18 has no token sequences that context-parallel ranks could "
        "divide\n"
        "  use 1, or one of: " +
            models_where(
                [](const Row& row) { return row.has_rule(Rule::Kind::kContextRanksShare); }));
}

TEST_CASE("experts take tokens of shared sequences where they take all, and have no capacity") {
  const auto mixtral = [](const std::string& capacity) {
    return R"(model={"name": "mixtral", "vocab_size": 11, "positions": 24, "dim": 24, "heads": 6,
                     "kv_heads": 6, "capacity_factor": )" +
           capacity + "}";
  };
  CHECK(context_error(context_changes({"parallel.context=2"}, mixtral("0"))) == "no error");
  CHECK(context_error(context_changes({"parallel.context=2"}, mixtral("1.5"))) ==
        "--set model: /model/capacity_factor: counts the tokens of a micro-batch in their order, "
        "and each of \"context\": 2 ranks sees only a part\n"
        "  use 0");
}

TEST_CASE("dropped attention weights are refused") {
  const auto gpt2 = [](const std::string& dropout) {
    return R"(model={"name": "gpt2", "vocab_size": 11, "positions": 24, "dim": 24, "heads": 6)" +
           dropout + "}";
  };
  CHECK(context_error(context_changes({"parallel.context=2"}, gpt2(R"(, "dropout": 0.2)"))) ==
        "--set model: /model/dropout: drops attention weights, and each of \"context\": 2 ranks "
        "sees only a part\n"
        "  use 0");
  CHECK(context_error(context_changes({"parallel.context=2"}, gpt2(""))).find("/model/dropout") !=
        std::string::npos);
  CHECK(context_error(context_changes({"parallel.context=2"}, gpt2(R"(, "dropout": 0)"))) ==
        "no error");
  CHECK(context_error(context_changes({}, gpt2(R"(, "dropout": 0.2)"))) == "no error");
}

TEST_CASE("what goes together is not refused") {
  const auto error = [](const std::string& change) {
    return context_error(context_changes({"parallel.context=2", change}));
  };
  CHECK(error("sync=async") == "no error");
  CHECK(error(R"(sync={"name": "periodic", "steps": 2})") == "no error");
  CHECK(error(R"(sync={"name": "diloco", "steps": 4, "fragments": 2})") == "no error");
  for (const char* const name : {"bf16", "int8", "onebit", "powersgd"}) {
    CHECK(error(std::string("compress=") + name) == "no error");
  }
  CHECK(error("parallel.shard=2") == "no error");
  CHECK(error("parallel.tensor=2") == "no error");
  for (const char* const schedule : {"1f1b", "gpipe", "interleaved", "zero_bubble"}) {
    CHECK(context_error(context_changes({"parallel.context=2", "parallel.pipeline=2",
                                         std::string("parallel.schedule=") + schedule,
                                         "batch.accumulate=2"})) == "no error");
  }
  CHECK(error("recompute=all") == "no error");
  CHECK(error("data.document_attention=true") == "no error");
}

}  // namespace
}  // namespace scaletrain::recipe
