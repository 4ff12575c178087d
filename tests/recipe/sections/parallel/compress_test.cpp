#include "lib/recipe/sections/parallel/compress.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("compress is a name, with keys of its own") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").compress.has_value());
  const Recipe named = parse_recipe(minimal_recipe(), "r.json", {"compress=bf16"});
  CHECK(named.compress->name == "bf16");
  CHECK(named.compress->warmup == 0);
  const Recipe keyed = parse_recipe(minimal_recipe(), "r.json",
                                    {R"(compress={"name": "powersgd", "rank": 2, "warmup": 100})"});
  CHECK(keyed.compress->rank == 2);
  CHECK(keyed.compress->warmup == 100);
  CHECK(error_of(minimal_recipe(), {"compress=powersdg"}) ==
        "--set compress: /compress/name: \"powersdg\" is not a choice here\n"
        "  use one of: \"bf16\", \"fp16\", \"powersgd\", \"onebit\", \"int8\"");
  CHECK(error_of(minimal_recipe(), {R"(compress={"name": "powersgd", "rank": 0})"}) ==
        "--set compress: /compress/rank: 0 is out of range\n"
        "  use an integer from 1 to 1024");
}

TEST_CASE("a compression that keeps a part for the next step is not for fp16 and sam") {
  for (const std::string name : {"powersgd", "onebit", "int8"}) {
    CAPTURE(name);
    CHECK(error_of(minimal_recipe(), {"compress=" + name, "precision=fp16"}) ==
          "--set compress: " + name +
              " adds its error feedback to the next step, which may have another loss scale\n"
              "  use bf16 as precision, or as compress");
    CHECK(error_of(minimal_recipe(), {"compress=" + name, "sam={}"}) ==
          "--set compress: " + name +
              " adds its error feedback to the next gradients, and sam alternates between two "
              "kinds of gradients\n"
              "  leave one of them out, or use bf16");
  }
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"compress=fp16", "precision=fp16", "sam={}"})
            .compress->name == "fp16");
}

TEST_CASE("what fp64 keeps is not to be rounded") {
  CHECK(error_of(minimal_recipe(), {"compress=bf16", "precision=fp64"}) ==
        "--set compress: rounds gradients, and precision fp64 is to keep them exact\n  leave one "
        "of them out");
}

TEST_CASE("diloco supports 16-bit compression of pseudo-gradients, other sync methods refuse it") {
  for (const std::string name : {"bf16", "fp16"}) {
    CHECK(error_of(minimal_recipe(), {"compress=" + name, "sync=diloco"}) == "no error");
  }
  CHECK(error_of(minimal_recipe(), {"compress=int8", "sync=diloco", "precision=fp16"}) ==
        "--set compress: int8 compresses gradients, and diloco communicates pseudo-gradients\n"
        "  use bf16 or fp16");
  for (const std::string name : {"periodic", "async"}) {
    CHECK(error_of(minimal_recipe(), {"compress=bf16", "sync=" + name}) ==
          "--set compress: replicas communicate weights instead of gradients: sync is " + name +
              "\n  leave one of them out, or use diloco");
  }
}

TEST_CASE("what compresses elements by themselves goes with each axis, other things with some") {
  const auto error = [](const std::string& name, const std::string& axis) {
    return error_of(minimal_recipe(),
                    {"compress=" + name, "parallel." + axis + "=2", "batch.accumulate=2"});
  };
  for (const std::string axis : {"shard", "pipeline"}) {
    CHECK(error("bf16", axis) == "no error");
    CHECK(error("fp16", axis) == "no error");
  }
  for (const std::string name : {"int8", "onebit"}) {
    CHECK(error(name, "shard") == "no error");
    CHECK(error(name, "pipeline") == "no error");
    CHECK(error_of(minimal_recipe(),
                   {"compress=" + name, "model.name=vit_tiny", "parallel.tensor=3"}) == "no error");
  }
  CHECK(error("powersgd", "pipeline") == "no error");
  CHECK(error("powersgd", "shard") ==
        "--set compress: powersgd needs full matrices, and each of \"shard\": 2 ranks has flat "
        "ranges of their elements\n  use bf16, fp16, int8 or onebit");
  CHECK(error_of(minimal_recipe(), {"compress=onebit", "parallel.pipeline=2", "parallel.shard=2",
                                    "batch.accumulate=2"}) ==
        "--set compress: the error feedback of onebit would differ among the stages of "
        "\"pipeline\": 2 for a tied tensor, with \"shard\"\n"
        "  use bf16 or fp16");
  CHECK(error_of(minimal_recipe(),
                 {"compress=powersgd", "model.name=vit_tiny", "parallel.tensor=3"}) ==
        "--set compress: powersgd needs full matrices, and each rank of \"tensor\": 3 "
        "has a slice of each\n  use bf16, fp16, int8 or onebit");
}

}  // namespace scaletrain::recipe
