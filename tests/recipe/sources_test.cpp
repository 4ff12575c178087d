#include "lib/recipe/sources.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/recipe.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {

TEST_CASE("check_sources passes what is there and names everything that is not") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path.string();
  Recipe recipe;
  recipe.data.train.shards = {folder.write("a.tar", "x")};
  recipe.data.val.emplace().folder = here;
  recipe.data.train.shards.emplace_back("s3://bucket/absent.tar");  // the workers' business
  CHECK_NOTHROW(check_sources(recipe));

  recipe.data.train.shards.push_back(here + "/b.tar");
  recipe.data.train.shards.push_back(here);
  recipe.data.val->folder = here + "/a.tar";
  recipe.data.test.emplace().folder = here + "/none";
  const std::string expected =
      "/data/train/shards: " + here + "/b.tar: No such file or directory (ENOENT)\n" +
      "  make the files, or correct the path; paths are relative to the working directory\n" +
      "/data/train/shards: " + here + ": not a regular file\n" +  //
      "/data/val/folder: " + here + "/a.tar: not a folder\n" +    //
      "/data/test/folder: " + here + "/none: No such file or directory (ENOENT)";
  CHECK_THROWS_WITH_AS(check_sources(recipe), expected.c_str(), core::DataError);

  recipe = {};
  recipe.data.train.sources.resize(2);
  recipe.data.train.sources[0].folder = here;
  recipe.data.train.sources[1].shards = {here + "/b.tar"};
  const std::string one = "/data/train/sources/1/shards: " + here +
                          "/b.tar: No such file or directory (ENOENT)\n  make the files, or "
                          "correct the path; paths are relative to the working directory";
  CHECK_THROWS_WITH_AS(check_sources(recipe), one.c_str(), core::DataError);
}

TEST_CASE("check_sources looks at a model's file") {
  const test::TemporaryFolder folder;
  Recipe recipe;
  recipe.model.name = "torchscript";
  recipe.model.options["file"] = folder.write("model.pt", "x");
  CHECK_NOTHROW(check_sources(recipe));
  const std::string absent = folder.path.string() + "/absent.pt";
  recipe.model.options["file"] = absent;
  const std::string expected =
      "/model/file: " + absent +
      ": No such file or directory (ENOENT)\n  make the files, or correct the path; paths are "
      "relative to the working directory";
  CHECK_THROWS_WITH_AS(check_sources(recipe), expected.c_str(), core::DataError);
}

TEST_CASE("check_weights takes a file or a folder") {
  const test::TemporaryFolder folder;
  Recipe recipe;
  CHECK_NOTHROW(check_weights(recipe));
  recipe.model.weights.emplace().path = folder.path.string();
  CHECK_NOTHROW(check_weights(recipe));
  recipe.model.weights->path = folder.write("model.safetensors", "x");
  CHECK_NOTHROW(check_weights(recipe));
  recipe.model.weights->path = folder.path.string() + "/absent";
  const std::string expected =
      "/model/weights/path: " + folder.path.string() +
      "/absent: No such file or directory (ENOENT)\n  make the files, or correct the path; paths "
      "are relative to the working directory";
  CHECK_THROWS_WITH_AS(check_weights(recipe), expected.c_str(), core::DataError);
}

}  // namespace scaletrain::recipe
