#include "lib/recipe/catalog/local_shards.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

// The names that stand for `pattern` in a folder of its own, or the mistake.
struct Folder {
  Folder() {
    for (const char* name :
         {"b-1.tar", "b-0.tar", "b-0.tar.idx", "a.tar.gz", ".b-2.tar", "c.txt"}) {
      std::ofstream(folder.path / name) << "x";
    }
    std::filesystem::create_directory(folder.path / "b-9.tar");
  }

  std::string found(const std::string& pattern) const {
    std::string mistake, text;
    for (const std::string& name : local_shards((folder.path / pattern).string(), mistake)) {
      text += std::filesystem::path(name).filename().string() + " ";
    }
    return mistake.empty() ? text : mistake;
  }

  test::TemporaryFolder folder;
};

TEST_CASE("a pattern stands for the files that fit, sorted; a name for itself, there or not") {
  const Folder folder;
  CHECK(folder.found("b-*.tar") == "b-0.tar b-1.tar ");
  CHECK(folder.found("*") == "a.tar.gz b-0.tar b-0.tar.idx b-1.tar c.txt ");
  CHECK(folder.found("b-1.tar") == "b-1.tar ");
  CHECK(folder.found("b-3.tar") == "b-3.tar ");
  CHECK(folder.found("no-*.tar") ==
        "\"" + (folder.folder.path / "no-*.tar").string() + "\" fits no file");
  std::ofstream(folder.folder.path / "b-*.tar") << "a strange name";
  CHECK(folder.found("b-*.tar") == "b-*.tar ");
}

TEST_CASE("a folder stands for its shards") {
  const Folder folder;
  CHECK(folder.found("") == "a.tar.gz b-0.tar b-1.tar ");
  CHECK(folder.found("b-9.tar") == "b-9.tar ");  // which training refuses
  std::filesystem::create_directory(folder.folder.path / "empty");
  CHECK(folder.found("empty") ==
        "\"" + (folder.folder.path / "empty").string() + "\" is a folder without a .tar");
  std::filesystem::create_directories(folder.folder.path / "empty/train");
  std::ofstream(folder.folder.path / "empty/train/a.tar") << "";
  CHECK(folder.found("empty") == "\"" + (folder.folder.path / "empty").string() +
                                     "\" is a folder without a .tar; \"train\" in it has some");
}

TEST_CASE("a recipe holds the names that were found") {
  const Folder folder;
  const std::string place = folder.folder.path.string();
  const auto shards = [&](const std::string& name) {
    return parse_recipe(minimal_recipe(), "r.json", {"data.train.shards=" + place + name})
        .data.train.shards;
  };
  const std::vector<std::string> both{place + "/b-0.tar", place + "/b-1.tar"};
  CHECK(shards("/b-*.tar") == both);
  CHECK(shards("/{b,b}-1*.tar") == std::vector<std::string>(2, place + "/b-1.tar"));
  CHECK_THROWS_WITH_AS(shards(""), doctest::Contains("a.tar.gz is compressed"), core::RecipeError);
  CHECK_THROWS_WITH_AS(shards("/no-*.tar"), doctest::Contains("no-*.tar\" fits no file"),
                       core::RecipeError);
  CHECK_THROWS_WITH_AS(
      parse_recipe(minimal_recipe(), "r.json", {"data.train.shards=https://h/train-*.tar"}),
      doctest::Contains("is not looked for on a web server"), core::RecipeError);
}

}  // namespace
}  // namespace scaletrain::recipe
