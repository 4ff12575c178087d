#include "lib/recipe/evaluation.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

EvaluationRequest evaluation(const std::string& words) {
  CLI::App command("test");
  EvaluationRequest result;
  add_evaluation_flags(command, result);
  command.parse(words);
  return result;
}

PredictionRequest prediction(const std::string& words) {
  CLI::App command("test");
  PredictionRequest result;
  add_prediction_flags(command, result);
  command.parse(words);
  return result;
}

std::string overrides(const std::string& words, bool reads_tokens = false) {
  return fmt::format("{}", fmt::join(overrides_of(evaluation(words), reads_tokens), " "));
}

std::string files(const std::string& words, const std::string& task) {
  try {
    check_files(evaluation(words), task);
    return "";
  } catch (const core::UsageError& error) {
    return error.what();
  }
}

std::string set(const std::string& words, const Data& data) {
  try {
    return set_of(evaluation(words), data);
  } catch (const core::UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a checkpoint is enough to evaluate, and every flag has its place") {
  const EvaluationRequest plain = evaluation("runs/a");
  CHECK(plain.checkpoint == "runs/a");
  CHECK(plain.nproc == "1");
  CHECK(overrides("runs/a").empty());

  const EvaluationRequest all = evaluation(
      "runs/a --on few --nproc 4 --batch 8 --device cpu --set precision=bf16 --json "
      "--predictions p.csv --html p.html --worker w");
  CHECK(all.set == "few");
  CHECK(all.nproc == "4");
  CHECK(all.json);
  CHECK(all.predictions == "p.csv");
  CHECK(all.html == "p.html");
  CHECK(all.worker == "w");
  CHECK(overrides_of(all, false) == std::vector<std::string>{"precision=bf16", "device=cpu",
                                                             "batch=null", "batch.per_device=8"});
  CHECK_THROWS_AS(evaluation("runs/a --on few --data a.tar"), CLI::ParseError);
  CHECK_THROWS_AS(evaluation("runs/a --batch -1"), CLI::ParseError);
}

TEST_CASE("other data stands in place of the validation's, whatever it is") {
  const test::TemporaryFolder folder;
  folder.write("cat/1.png", "");
  CHECK(overrides("a --data b.tar --data c.tar") ==
        R"(data.val=null data.val={"shards":["b.tar","c.tar"]})");
  CHECK(overrides("a --data b.bin", /*reads_tokens=*/true) ==
        R"(data.val=null data.val={"tokens":["b.bin"]})");
  const std::string path = folder.path.string();
  CHECK(overrides(fmt::format("a --data {}", path)) ==
        fmt::format(R"(data.val=null data.val={{"folder":"{}"}})", path));
  CHECK_THROWS_AS(overrides(fmt::format("a --data {} --data b.tar", path)), core::UsageError);
  CHECK(set("a --data b.tar", {}) == "val");
}

TEST_CASE("a set is meant by its name") {
  Data data;
  CHECK(set("a", data) == "eval: the run has no held-out set\n  name one: --data SHARDS");
  data.extra["night"] = {};
  CHECK(set("a", data) == "extra/night");
  data.test.emplace();
  CHECK(set("a", data) == "test");
  data.val.emplace();
  CHECK(set("a", data) == "val");
  CHECK(set("a --on test", data) == "test");
  CHECK(set("a --on night", data) == "extra/night");
  CHECK(set("a --on extra/night", data) == "extra/night");
  CHECK(set("a --on day", data) ==
        "--on: \"day\" is no held-out set of the run\n"
        "  use one of: val, test, extra/night; or --data SHARDS");
}

TEST_CASE("files are written of tasks that have what stands in them") {
  CHECK(files("a --predictions p --html h", "image_classification").empty());
  CHECK(files("a --predictions p", "multi_label_classification").empty());
  CHECK(files("a", "language_modelling").empty());
  CHECK(files("a --html h", "multi_label_classification") ==
        "--html: is for images of one class each, and the checkpoint's task is "
        "multi_label_classification\n"
        "  leave it out; --predictions writes the probabilities of all samples");
  CHECK(files("a --html h", "language_modelling") ==
        "--html: is for images of one class each, and the checkpoint's task is "
        "language_modelling\n"
        "  leave it out");
  CHECK(files("a --predictions p", "language_modelling") ==
        "--predictions: is for classifiers of images, and the checkpoint's task is "
        "language_modelling\n"
        "  leave it out");
}

TEST_CASE("predict is for models that give each image one class") {
  Recipe recipe = parse_recipe(minimal_recipe(), "r.json");
  CHECK_NOTHROW(check_labels_images("a", recipe));
  recipe.task = "multi_label_classification";
  CHECK_THROWS_WITH_AS(check_labels_images("a", recipe),
                       "a: is of the task multi_label_classification\n"
                       "  name a checkpoint of image_classification",
                       core::UsageError);
}

TEST_CASE("predict takes a checkpoint and images") {
  const PredictionRequest asked =
      prediction("runs/a one.png folder --top 3 --csv --batch 4 --device cpu");
  CHECK(asked.checkpoint == "runs/a");
  CHECK(asked.inputs == std::vector<std::string>{"one.png", "folder"});
  CHECK(asked.top == 3);
  CHECK(asked.csv);
  CHECK(overrides_of(asked) ==
        std::vector<std::string>{"device=cpu", "batch=null", "batch.per_device=4"});
  CHECK_THROWS_AS(prediction("runs/a"), CLI::ParseError);
  CHECK_THROWS_AS(prediction("runs/a one.png --csv --json"), CLI::ParseError);
}

}  // namespace scaletrain::recipe
