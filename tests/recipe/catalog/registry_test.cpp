#include "lib/recipe/catalog/registry.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "lib/core/error.h"
#include "lib/core/version.h"
#include "lib/recipe/catalog/row_keys.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

namespace fs = std::filesystem;

// A worker's program and its registry in a folder of their own.
class WorkerFiles {
 public:
  WorkerFiles() {
    std::ofstream(program()) << "#!/bin/sh\n";
    fs::permissions(program(), fs::perms::owner_all);
  }

  std::string program() const { return folder_.file("worker"); }
  std::string registry() const { return program() + ".registry.json"; }
  void write(const std::string& text) const { std::ofstream(registry()) << text; }

  // The place is left out of the text.
  std::string error() const {
    try {
      read_catalog(registry());
    } catch (const core::Error& error) {
      CHECK(error.exit_code() == core::ExitCode::kUsage);
      CHECK(error.place() == registry());
      return error.found();
    }
    return "no error";
  }

  // The same for a registry with one model of these members.
  std::string error_of_model(const std::string& members) const {
    write(fmt::format(R"({{"version": 1, "scaletrain": "{}", "models": [{{{}}}]}})",
                      core::version(), members));
    return error();
  }

 private:
  test::TemporaryFolder folder_;
};

std::vector<Row> rows_of_every_kind() {
  std::vector<Row> rows = models().rows;
  for (Row& row : rows) row.name = "own_" + row.name;
  rows.push_back({"all",
                  "every kind of key",
                  {KEY_INT(n, 4, from(1), "a"), KEY_INT(m, 8, above(0).to(64), "b"),
                   KEY_NUM(x, 0.25, above(0).below(1), "c"), KEY_NUM(y, 1.5, from(-2).to(2), "d"),
                   KEY_FLAG(f, true, "e"), KEY_CHOICE(c, "f", {"one", "the first"}, "two"),
                   KEY_FILE(file, "g"), KEY_NUMBERS(list, above(0).to(9), "h"), KEY_DIVIDES(n, m),
                   KEY_DIVIDES_INTO_EVEN(n, m), KEY_DIVIDES_IMAGE_SIZE(n), KEY_AT_MOST(x, y),
                   KEY_NEEDS_ABOVE_ZERO(f, x), HAS_BATCH_NORM, IS_ONE_UNIT, HAS_UNITS(n, 2),
                   HAS_UNITS_FIXED(3)}});
  return rows;
}

constexpr const char* kHead = R"("name": "own", "help": "", "task": "image_classification")";

}  // namespace

TEST_CASE("a registry that is read says what was written") {
  const WorkerFiles files;
  const CatalogPtr catalog = catalog_with(rows_of_every_kind());
  files.write(to_json(*catalog));
  CHECK(to_json(*read_catalog(files.registry())) == to_json(*catalog));
  CHECK(markdown_reference(read_catalog(files.registry())) == markdown_reference(catalog));
}

TEST_CASE("a damaged registry is refused in one sentence") {
  const WorkerFiles files;
  CHECK(files.error() == "cannot be read: No such file or directory (ENOENT)");
  files.write("");
  CHECK(files.error().starts_with("is damaged: "));
  files.write(to_json(*built_in_catalog()).substr(0, 400));
  CHECK(files.error().starts_with("is damaged: "));
  files.write("[1]");
  CHECK(files.error().starts_with("is damaged: "));
  CHECK(files.error_of_model(R"("name": 3)") == "is damaged: name is of another type");
  CHECK(files.error_of_model(fmt::format(R"({}, "keys": [], "rules": [{{"rule": "x"}}])", kHead)) ==
        "is damaged: x is no rule");
  CHECK(files.error_of_model(fmt::format(
            R"({}, "keys": [], "rules": [{{"rule": "units", "other": "-1"}}])", kHead)) ==
        "model own has \"-1\" units");
  const auto with_key = [&](const char* key) {
    return files.error_of_model(
        fmt::format(R"({}, "rules": [], "keys": [{{"key": "k", "help": "", {}}}])", kHead, key));
  };
  CHECK(with_key(R"("type": "flag", "default": true)") == "no error");
  CHECK(with_key(R"("type": "flag", "default": 1)") == "is damaged: default is of another type");
  CHECK(with_key(R"("type": "text")") == "is damaged: text is no type");
  CHECK(with_key(R"("type": "integer", "default": 2.5, "least": 1)") ==
        "is damaged: default is of another type");
  CHECK(with_key(R"("type": "integer", "default": 0, "least": 1)") ==
        "model own has a default of \"k\" that is not allowed");
  CHECK(with_key(R"("type": "choice", "default": "a", "allowed": [])") ==
        "is damaged: nothing is allowed");
}

TEST_CASE("a registry of another version is refused") {
  const WorkerFiles files;
  files.write(R"({"version": 1, "scaletrain": "0.0.9", "models": []})");
  CHECK(files.error() ==
        fmt::format("was written by scaletrain 0.0.9, and this is {}", core::version()));
  files.write(fmt::format(R"({{"version": 2, "scaletrain": "{}"}})", core::version()));
  CHECK(files.error() == "has version 2, and 1 is known");
}

TEST_CASE("a recipe's worker says what its models are") {
  const WorkerFiles files;
  files.write(to_json(*catalog_with({{"own", "", {KEY_INT(width, 8, from(1).to(64), "")}}})));
  const std::string own = R"(model={"name": "own", "num_classes": 10, "width": 100})";
  const std::string worker = "worker=" + files.program();
  CHECK(error_of(minimal_recipe(), {own, worker}) ==
        "--set model: /model/width: 100 is out of range\n  use an integer from 1 to 64");
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {own, "model.width=9", worker});
  CHECK(recipe.model.integer("width") == 9);
  CHECK(recipe.worker == files.program());
  // As it is stored with a run.
  CHECK(parse_recipe(to_json(recipe), "recipe.json").model.integer("width") == 9);

  const std::string link = files.program() + "-link";
  fs::create_symlink(files.program(), link);
  CHECK(parse_recipe(minimal_recipe(), "r.json", {own, "model.width=9", "worker=" + link})
            .model.name == "own");

  fs::remove(files.registry());
  CHECK(error_of(minimal_recipe(), {"model.name=own", worker}) ==
        fmt::format("--set model.name: \"own\" is not a model\n  use one of: {}; a worker of your "
                    "own has a list beside it, and {} is missing",
                    fmt::join(models().names(), ", "), files.registry()));
  CHECK(parse_recipe(minimal_recipe(), "r.json", {worker}).model.name == "mlp");
  CHECK(error_of(minimal_recipe("\"worker\": \"/nowhere/worker\"")) ==
        "r.json:6: /worker: \"/nowhere/worker\" is not an executable file\n"
        "  name a worker program, here or by --worker PATH");
}

}  // namespace scaletrain::recipe
