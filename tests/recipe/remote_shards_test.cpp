#include "lib/recipe/remote_shards.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

// A store with one folder.
std::vector<std::string> list(const std::string& folder) {
  if (folder == "s3://b") return {"c.tar"};
  if (folder != "s3://b/set") return {};
  return {".tmp-9.tar", "b-1.tar", "a.tar.gz", "b-0.tar", "classes.json", "b-0.tar.idx"};
}

std::string found(const std::string& name) {
  std::string mistake, text;
  for (const std::string& shard : remote_shards(name, list, mistake)) text += shard + " ";
  return text + mistake;
}

}  // namespace

TEST_CASE("a pattern is the objects that fit, a folder its shards, another name itself") {
  CHECK(found("s3://b/set/b-*.tar") == "s3://b/set/b-0.tar s3://b/set/b-1.tar ");
  CHECK(found("s3://b/*.tar") == "s3://b/c.tar ");
  CHECK(found("s3://b") == "s3://b/c.tar ");
  const std::string all = "s3://b/set/a.tar.gz s3://b/set/b-0.tar s3://b/set/b-1.tar ";
  CHECK(found("s3://b/set") == all);
  CHECK(found("s3://b/set/") == all);
  CHECK(found("s3://b/set/b-00") == "s3://b/set/b-00 ");
  CHECK(found("s3://b/set/no-*.tar") == "\"s3://b/set/no-*.tar\" fits no object");
  CHECK(found("s3://b/no/") == "\"s3://b/no/\" is a folder without a .tar");
}

TEST_CASE("only stores that list what they hold are asked") {
  for (const char* const name : {"s3://b/x-*.tar", "gs://b/set", "s3://b/set/"}) {
    CHECK(may_be_remote_group(name));
  }
  for (const char* const name :
       {"s3://b/x.tar", "s3://b/x.tar.zst", "https://h/set", "pipe:cat *.tar", "/disk/set"}) {
    CHECK(!may_be_remote_group(name));
  }
}

TEST_CASE("groups are replaced in every set, and plain names are not asked for") {
  Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(data.train={"sources": [{"shards": "s3://b/set/b-*.tar"}, {"shards": "s3://b/set"}]})",
       R"(data.val.shards=["s3://b/set/b-{0..1}.tar", "s3://b/old-name", "s3://b/set/"])"});
  std::vector<std::string> asked;
  const auto shards_of = [&asked](const std::string& name) {
    asked.push_back(name);
    return std::vector<std::string>{name + "!"};
  };
  CHECK(replace_remote_groups(recipe, shards_of));
  CHECK(asked == std::vector<std::string>{"s3://b/set/b-*.tar", "s3://b/set", "s3://b/set/"});
  CHECK(recipe.data.train.sources[0].shards == std::vector<std::string>{"s3://b/set/b-*.tar!"});
  CHECK(recipe.data.train.sources[1].shards == std::vector<std::string>{"s3://b/set!"});
  CHECK(recipe.data.val->shards == std::vector<std::string>{"s3://b/set/b-0.tar",
                                                            "s3://b/set/b-1.tar", "s3://b/old-name",
                                                            "s3://b/set/!"});
  Recipe plain = parse_recipe(minimal_recipe(), "r.json", {"data.train.shards=s3://b/x.tar"});
  CHECK(!replace_remote_groups(plain, shards_of));
  CHECK(asked.size() == 3);
}

}  // namespace scaletrain::recipe
