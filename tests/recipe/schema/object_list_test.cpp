#include "lib/recipe/schema/object_list.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

std::string here(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// The minimal recipe with another data.train, on the third line.
std::string with_train(const std::string& train) {
  std::string text = minimal_recipe();
  const std::string before = R"({"shards": "a.tar"})";
  return text.replace(text.find(before), before.size(), train);
}

std::string train_error(const std::string& train) { return error_of(with_train(train)); }

}  // namespace

TEST_CASE("sources are read one by one") {
  const Recipe recipe =
      parse_recipe(with_train(R"({"sources": [{"shards": "x-{0..1}.tar::y.tar", "weight": 2.5},
                                 {"folder": "/f", "limit": 100, "balanced": true}]})"),
                   "r.json");
  const std::vector<Source>& sources = recipe.data.train.sources;
  REQUIRE(sources.size() == 2);
  CHECK(sources[0].shards ==
        std::vector<std::string>{here("x-0.tar"), here("x-1.tar"), here("y.tar")});
  CHECK(sources[0].weight == 2.5);
  CHECK_FALSE(sources[0].limit.has_value());
  CHECK(sources[1].folder == "/f");
  CHECK(sources[1].weight == 1);
  CHECK(sources[1].limit == 100);
  CHECK(sources[1].balanced);
}

TEST_CASE("mistakes in a list of objects name the item") {
  CHECK(train_error(R"({"sources": [{"shards": "a.tar"}, {"shards": "b.tar", "wieght": 1}]})") ==
        "r.json:3: /data/train/sources/1/wieght: \"wieght\" is not a key here\n  did you mean "
        "\"weight\"?");
  CHECK(train_error(R"({"sources": [{"shards": "a.tar", "weight": 0}]})") ==
        "r.json:3: /data/train/sources/0/weight: 0 is out of range\n"
        "  use a number above 0 and at most 1000000");
  CHECK(train_error(R"({"sources": [{"weight": 1}]})") ==
        "r.json:3: /data/train/sources/0: none of \"shards\", \"folder\" is there\n"
        "  add one of them");
  const std::string phrase =
      "  use a list; each item an object with keys of: shards, folder, weight, limit, balanced";
  CHECK(train_error(R"({"sources": []})") ==
        "r.json:3: /data/train/sources: is an empty list\n" + phrase);
  CHECK(train_error(R"({"sources": "a.tar"})") ==
        "r.json:3: /data/train/sources: \"a.tar\" is not a list\n" + phrase);
}

TEST_CASE("a list of shards may be joined by double colons") {
  CHECK(train_error(R"({"shards": "a.tar::b.tar"})") == "no error");
  CHECK(train_error(R"({"shards": "a.tar::"})") ==
        "r.json:3: /data/train/shards: has an empty name beside \"::\"\n"
        "  use a path or URL (http, https, s3, gs, pipe) or a list of them, also A::B; "
        "{000000..000003} and {a,b} are expanded; on disks, s3 and gs also * and folders");
}

}  // namespace scaletrain::recipe
