#include "lib/recipe/agreed.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

// How a recipe with `change` differs from one without.
std::string difference_of(const std::vector<std::string>& change,
                          const std::vector<std::string>& base = {}) {
  std::vector<std::string> both = base;
  both.insert(both.end(), change.begin(), change.end());
  const Recipe first = parse_recipe(minimal_recipe(), "r.json", base);
  const Recipe second = parse_recipe(minimal_recipe(), "r.json", both);
  return first_difference(agreed_values(second), agreed_values(first)).value_or("none");
}

TEST_CASE("the first key that differs is named with both values") {
  CHECK(difference_of({}) == "none");
  CHECK(difference_of({"optimizer.lr=0.5"}, {"optimizer.lr=0.05"}) ==
        "optimizer.lr is 0.5, not 0.05");
  CHECK(difference_of({"seed=8", "validate.every.epochs=2"}, {"seed=7"}) == "seed is 8, not 7");
  CHECK(difference_of({"clip.norm=1.0"}) == "clip.norm is 1.0, not unset");
  CHECK(difference_of({"name=b"}, {"name=a"}) == R"(name is "b", not "a")");
}

TEST_CASE("hosts may have the same files in other places, and read them at another pace") {
  const std::vector<std::string> base{"data.train.shards=/a/t-{0..1}.tar"};
  for (const char* const change :
       {"data.train.shards=/b/t-{0..1}.tar", "data.train.shards=s3://b/t-{0..1}.tar",
        "output=/elsewhere", "data.index_cache=/c", "data.threads=3", "data.prefetch=9",
        "threads=2", R"(data.cache={"folder": "/c", "max_bytes": 1048576})",
        "storage.stall_timeout_s=3"}) {
    CAPTURE(change);
    CHECK(difference_of({change}, base) == "none");
  }
  CHECK(difference_of({"data.train.shards=/a/u-{0..1}.tar"}, base) ==
        R"(data.train.shards is ["u-0.tar","u-1.tar"], not ["t-0.tar","t-1.tar"])");
  CHECK(difference_of({"data.val.folder=/w"}, {"data.val.folder=/v"}) == "none");
  CHECK(difference_of({R"(data.train.sources=[{"folder": "/w"}, {"shards": "/b/u.tar"}])"},
                      {R"(data.train={"sources": [{"folder": "/v"}, {"shards": "/a/u.tar"}]})"}) ==
        "none");
}

TEST_CASE("an error shows a long value by its beginning and its digest") {
  const std::string shards = "data.train.shards=/a/train-{0..99}.tar";
  const std::string value =
      agreed_values(parse_recipe(minimal_recipe(), "r.json", {shards})).at("data.train.shards");
  CHECK(value.starts_with(R"(["train-0.tar","train-1.tar")"));
  CHECK(value.size() == 60 + std::string("... (digest 0123456789abcdef)").size());
  CHECK(difference_of({"data.train.shards=/a/train-{0..98}.tar"}, {shards}) != "none");
  // Of other letters too, wherever it is cut.
  const AgreedValues letters = agreed_values(parse_recipe(
      minimal_recipe(), "r.json", {"data.train.shards=/a/\u00e4\u00f6\u00fc-{0..99}.tar"}));
  CHECK(letters.at("data.train.shards").starts_with(R"(["\u00e4\u00f6\u00fc-0.tar",)"));
}

}  // namespace
}  // namespace scaletrain::recipe
