#include "lib/train/initial_weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/train/build.h"
#include "lib/train/snapshot.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

// A run whose tensors are all 0.25, with `classes` classes; its folder.
std::string saved(const testing::TinyRun& tiny, int classes) {
  const std::string folder = tiny.path(fmt::format("of_{}_classes", classes));
  const recipe::Recipe recipe =
      tiny.recipe({"output=" + folder, fmt::format("model.num_classes={}", classes)});
  const std::string said = testing::said_apart([&]() -> std::string {
    const auto run = build_run(recipe, {}, std::nullopt, {});
    for (const auto& [name, tensor] : run->learner.tensors()) tensor.fill_(0.25);
    checkpoint::save(core::system_disk(), folder, snapshot(*run), {.last = 1});
    return "saved";
  });
  REQUIRE(said == "saved");
  return folder;
}

std::string sums(const Run& run) {
  const NamedTensors tensors = run.learner.tensors();
  const auto is_taken = [&](const char* name) {
    return tensors.at(name).eq(0.25).all().item<bool>() ? "taken" : "own";
  };
  return fmt::format("fc1 {}, head {}", is_taken("fc1.weight"), is_taken("head.weight"));
}

// Of each of two ranks.
std::vector<std::string> built(const recipe::Recipe& recipe,
                               const std::optional<fs::path>& resume = std::nullopt) {
  std::vector<std::string> said;
  for (const auto& result :
       testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
         const auto run = build_run(recipe, env, resume, {});
         std::string text = sums(*run);
         run->mesh->end("end");
         return text;
       })) {
    said.push_back(result.text);
  }
  return said;
}

using Said = std::vector<std::string>;

}  // namespace

TEST_CASE("all ranks start from the weights, of which rank 0 leaves a report") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({"model.weights=" + saved(tiny, 3)});
  CHECK((built(recipe) == Said{"fc1 taken, head taken", "fc1 taken, head taken"}));
  const std::string report =
      core::read_file(fs::path(recipe.output) / "weights.json", 10'000, core::ExitCode::kData);
  CHECK(report.find("of_3_classes/checkpoints/step-00000000/model.safetensors") !=
        std::string::npos);
  CHECK(report.find("\"head.bias\"") != std::string::npos);
}

TEST_CASE("a head of another number of classes is a new one, the same as without weights") {
  const testing::TinyRun tiny;
  CHECK((built(tiny.recipe({"model.weights=" + saved(tiny, 5)})) ==
         Said{"fc1 taken, head own", "fc1 taken, head own"}));
}

TEST_CASE("a run that goes on does not look at the weights") {
  const testing::TinyRun tiny;
  const std::string checkpoint = saved(tiny, 3) + "/checkpoints/step-00000000";
  const recipe::Recipe recipe = tiny.recipe(
      {"model.weights=" + tiny.path("absent"), R"(batch={"global": 4, "per_device": 2})"});
  CHECK((built(recipe, checkpoint) == Said{"fc1 taken, head taken", "fc1 taken, head taken"}));
  CHECK_FALSE(fs::exists(fs::path(recipe.output) / "weights.json"));
}

TEST_CASE("weights that do not fit end the run") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({"model.weights=" + saved(tiny, 3), "model.hidden=6"});
  const std::string said = testing::said_apart([&]() -> std::string {
    build_run(recipe, {}, std::nullopt, {});
    return "built";
  });
  CHECK(said.find("does not fit the model: tensors 3 of another shape (fc1.bias: [5] instead of "
                  "[6]") != std::string::npos);
}

}  // namespace scaletrain::train
