#include "lib/recipe/sections/data/source.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

using namespace scaletrain::recipe;  // NOLINT(google-build-using-namespace)

namespace {

// What is said of the minimal recipe, whose model reads images, with data.train `train`, without
// that the model does not read tokens.
std::string token_errors(const std::string& train, std::vector<std::string> others = {}) {
  others.push_back("data.train=" + train);
  std::string text = error_of(minimal_recipe(), others);
  const std::string of_model =
      "--set data.train: /data/train/tokens: mlp reads images, not tokens\n"
      "  use shards or a folder of images, or a language model";
  const std::size_t at = text.find(of_model);
  if (at == std::string::npos) return text;
  return text.erase(at == 0 ? 0 : at - 1, of_model.size() + 1);
}

// What is said of the minimal recipe with another data.train, on its third line.
std::string source_error(const std::string& train, const std::vector<std::string>& overrides = {}) {
  std::string text = minimal_recipe();
  const std::string before = R"({"shards": "a.tar"})";
  return error_of(text.replace(text.find(before), before.size(), train), overrides);
}

}  // namespace

TEST_CASE("tokens are one of the kinds of a source, for a model that reads them") {
  CHECK(token_errors(R"({"tokens": "a-{0..1}.bin::b.npy"})").empty());
  CHECK(token_errors(R"({"tokens": "a.bin", "shards": "a.tar"})")
            .starts_with("--set data.train: /data/train/tokens: excludes \"shards\""));
  CHECK(token_errors(R"({})").starts_with(
      "--set data.train: none of \"shards\", \"folder\", \"tokens\", \"sources\" is "
      "there"));
}

TEST_CASE("what is for images does not go with tokens") {
  CHECK(token_errors(R"({"tokens": "a.bin", "limit": 5})") ==
        "--set data.train: /data/train/limit: does not go with \"tokens\"\n"
        "  leave it out, and name fewer files");
  for (const char* key : {R"("balanced": true)", R"("repeats": 2)", R"("cache": "memory")",
                          R"("augment": "torchvision-v1")"}) {
    const std::string name = std::string(key).substr(1, std::string(key).find('"', 1) - 1);
    CHECK(token_errors(std::string(R"({"tokens": "a.bin", )") + key + "}") ==
          "--set data.train: /data/train/" + name +
              ": does not go with \"tokens\"\n  leave it out");
  }
  CHECK(token_errors(R"({"tokens": "a.tar.gz"})",
                     {"data.cache.folder=/c", "data.cache.max_bytes=1048576"}) ==
        "--set data.train: /data/train/tokens: names a compressed file\n"
        "  decompress it: tokens are read at random positions");
  CHECK(token_errors(R"({"tokens": "a.bin"})", {"data.order=streamed"}) ==
        "--set data.train: /data/train/tokens: cannot be streamed\n"
        "  use shards, or the indexed order");
  CHECK(token_errors(R"({"tokens": "a.bin"})", {"data.val.shards=v.tar"}) ==
        "--set data.val.shards: /data/val: is of images, and /data/train of tokens\n"
        "  use sets of one kind");
  CHECK(error_of(minimal_recipe(), {"data.val.tokens=v.bin"}) ==
        "--set data.val.tokens: /data/val: is of tokens, and /data/train of images\n"
        "  use sets of one kind");
  CHECK(error_of(minimal_recipe(), {"data.token_bytes=3"}) ==
        "--set data.token_bytes: 3 is neither 2 nor 4\n"
        "  use 2 for tokens of 16 bits, 4 for those of 32");
}

TEST_CASE("what does not go together in a source is reported where it is written") {
  CHECK(source_error(R"({"sources": [{"shards": "a.tar"}], "limit": 5})") ==
        "r.json:3: /data/train/limit: cannot be set beside \"sources\"\n"
        "  give each source its own limit");
  CHECK(source_error(R"({"sources": [{"shards": "a.tar"}], "balanced": true})") ==
        "r.json:3: /data/train/balanced: cannot be set beside \"sources\"\n"
        "  balance each source by itself");
  const std::vector<std::string> streamed{"data.order=streamed"};
  CHECK(source_error(R"({"shards": "a.tar"})", streamed) == "no error");
  CHECK(source_error(R"({"folder": "f"})", streamed) ==
        "r.json:3: /data/train/folder: cannot be streamed\n  use shards, or the indexed order");
  CHECK(source_error(R"({"sources": [{"shards": "a.tar"}, {"folder": "f"}]})", streamed) ==
        "r.json:3: /data/train/sources/1/folder: cannot be streamed\n"
        "  use shards, or the indexed order");
}

TEST_CASE("sources, limits and balanced classes go with the streamed order") {
  const std::vector<std::string> streamed{"data.order=streamed"};
  for (const char* const train :
       {R"({"sources": [{"shards": "a.tar", "limit": 64}, {"shards": "b.tar", "weight": 2}]})",
        R"({"shards": "a.tar", "limit": 64})", R"({"shards": "a.tar", "balanced": true})",
        R"({"shards": "a.tar", "balanced": true, "limit": 5})"}) {
    CHECK(source_error(train, streamed) == "no error");
  }
  CHECK(source_error(R"({"shards": "a.tar", "limit": 63})", streamed) ==
        "r.json:3: /data/train/limit: 63 is less than /data/lanes, which is 64\n"
        "  use fewer lanes: each needs a sample");
  CHECK(source_error(R"({"sources": [{"shards": "a.tar", "limit": 5}]})",
                     {"data.order=streamed", "data.lanes=6"}) ==
        "r.json:3: /data/train/sources/0/limit: 5 is less than /data/lanes, which is 6\n"
        "  use fewer lanes: each needs a sample");
}

TEST_CASE("repeats are counted and do not go with the streamed order") {
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"data.train.repeats=3"}).data.train.repeats == 3);
  CHECK(error_of(minimal_recipe(), {"data.train.repeats=3", "data.order=streamed"}) ==
        "--set data.train.repeats: does not go with the streamed order\n"
        "  leave it out, or use the indexed order");
}

TEST_CASE("a trained image is not resized to less than is cut out of it") {
  CHECK(error_of(minimal_recipe(),
                 {R"(data.train.augment=[{"name": "center_crop", "resize": 200}])"}) ==
        "--set data.train.augment: /data/train/augment/0/resize: 200 is less than "
        "/data/image_size, which is 224\n"
        "  use 224 or more, or 0");
  parse_recipe(minimal_recipe(), "r.json", {R"(data.train.augment=["center_crop"])"});
}

TEST_CASE("a set is kept in memory by one word or with a size") {
  const Recipe plain = parse_recipe(minimal_recipe(), "r.json", {"data.train.cache=memory"});
  REQUIRE(plain.data.train.cache);
  CHECK(plain.data.train.cache->max_bytes == std::int64_t{1} << 30);
  const Recipe small = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(data.val={"shards": "b.tar", "cache": {"name": "memory", "max_bytes": 1000}})"});
  CHECK(!small.data.train.cache);
  CHECK(small.data.val->cache->max_bytes == 1000);
  CHECK(differing_keys(small, parse_recipe(to_json(small), "r.json")).empty());
  CHECK(error_of(minimal_recipe(), {"data.train.cache=disk"}) ==
        "--set data.train.cache: /data/train/cache/name: \"disk\" is not a choice here\n"
        "  use one of: \"memory\"");
}
