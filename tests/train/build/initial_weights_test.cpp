#include "lib/train/build/initial_weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/train/build/build.h"
#include "lib/train/state/reshard.h"
#include "lib/train/state/snapshot.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

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

// What makes the tiny run one of a small llama.
std::vector<std::string> llama_changes(const testing::TinyRun& tiny, const std::string& more = "") {
  std::ofstream file(tiny.path("text.bin"), std::ios::binary);
  for (int i = 0; i < 2000; ++i) file << static_cast<char>(i * 7 % 50) << '\0';
  return {R"(model={"name": "llama", "vocab_size": 50, "positions": 16, "dim": 16, "depth": 1,
             "heads": 2, "kv_heads": 2, "hidden": 8)" +
              more + "}",
          "data.val=null", "data.train=null", "data.train.tokens=" + tiny.path("text.bin"),
          "data.context=16"};
}

// Values that are all different, of a tensor of a saved run.
at::Tensor numbered(const at::Tensor& whole) {
  return at::arange(whole.numel(), at::kFloat).view(whole.sizes()) / 1024;
}

// The folder of a run of the small llama with these values.
std::string saved_text(const testing::TinyRun& tiny) {
  const std::string folder = tiny.path("llama");
  std::vector<std::string> changes = llama_changes(tiny);
  changes.push_back("output=" + folder);
  CHECK(testing::said_apart([&]() -> std::string {
          const auto run = build_run(tiny.recipe(changes), {}, std::nullopt, {});
          for (const auto& [name, tensor] : run->learner.tensors()) tensor.copy_(numbered(tensor));
          checkpoint::save(core::system_disk(), folder, snapshot(*run), {.last = 1});
          return "saved";
        }) == "saved");
  return folder;
}

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

TEST_CASE("the rows of a head follow the class names of the training set") {
  const testing::TinyRun tiny;
  const std::string file = tiny.path("classes.json"), folder = tiny.path("of_names");
  std::ofstream(file) << R"(["a", "b", "c"])";
  REQUIRE(testing::said_apart([&]() -> std::string {
            const auto run = build_run(tiny.recipe({"output=" + folder}), {}, std::nullopt, {});
            for (const auto& [name, tensor] : run->learner.tensors()) {
              tensor.copy_(numbered(tensor));
            }
            checkpoint::save(core::system_disk(), folder, snapshot(*run), {.last = 1});
            return "saved";
          }) == "saved");
  const auto rows = [&](const char* names, const std::string& more = "") {
    std::ofstream(file) << names;
    const recipe::Recipe recipe =
        tiny.recipe({R"(model.weights={"path": ")" + folder + "\"" + more + "}"});
    return testing::said_apart([&] {
      const auto run = build_run(recipe, {}, std::nullopt, {});
      const NamedTensors tensors = run->learner.tensors();
      CHECK(at::equal(tensors.at("fc1.weight"), numbered(tensors.at("fc1.weight"))));
      const at::Tensor bias = tensors.at("head.bias") * 1024;
      CHECK(at::equal(tensors.at("head.weight").select(1, 0) * 1024, bias * 5));
      return fmt::format("{} {} {}", bias[0].item<int>(), bias[1].item<int>(), bias[2].item<int>());
    });
  };
  CHECK(rows(R"(["a", "b", "c"])") == "0 1 2");
  CHECK(rows(R"(["c", "a", "b"])") == "2 0 1");
  CHECK(rows("[]") == "0 1 2");
  CHECK(rows(R"(["a", "b", "x"])", R"(, "allow_other": "class_names")") == "0 1 2");
  const std::string refused = rows(R"(["a", "b", "x"])");
  CHECK(refused.find("of_names: has the class \"c\", which data.train does not have\n") !=
        std::string::npos);
  CHECK(refused.find("set /model/weights/new_head for other classes") != std::string::npos);
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

TEST_CASE("weights of a model that computes otherwise end the run") {
  const testing::TinyRun tiny;
  const std::string folder = saved_text(tiny);
  const recipe::Recipe recipe =
      tiny.recipe(llama_changes(tiny, R"(, "norm_eps": 0.25, "weights": ")" + folder + "\""));
  CHECK(testing::said_apart([&]() -> std::string {
          build_run(recipe, {}, std::nullopt, {});
          return "built";
        }).find("is of a model with norm_eps 1e-05, not 0.25") != std::string::npos);
}

TEST_CASE("tensor ranks each take their part of the weights") {
  const testing::TinyRun tiny;
  const std::string folder = saved_text(tiny);
  std::vector<std::string> changes = llama_changes(tiny, R"(, "weights": ")" + folder + "\"");
  changes.insert(changes.end(), {"parallel.tensor=2"});
  const recipe::Recipe recipe = tiny.recipe(changes);
  for (const auto& result :
       testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
         const auto run = build_run(recipe, env, std::nullopt, {});
         std::string others;
         for (const auto& [name, full] : local_tensors(
                  gather_full(run->mesh->group(core::Axis::kTensor), run->learner.shards()))) {
           if (!at::equal(full, numbered(full))) others += name + " ";
         }
         run->mesh->end("end");
         return fmt::format("{}{}", run->learner.parts.empty() ? "no parts " : "", others);
       })) {
    CHECK(result.text.empty());
  }
}

TEST_CASE("the launcher gets heartbeats while weights are read, and the phase afterwards") {
  const testing::TinyRun tiny;
  const std::string folder = saved(tiny, 3);
  const std::string log = testing::logged_apart([&] {
    const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
    run->recipe = tiny.recipe({"model.weights=" + folder});
    const core::Descriptor file = core::make_beat_file();
    run->beat = core::Beat(file.get());
    run->beat.enter(core::Phase::kData);
    const std::uint64_t before = core::BeatReader(file.get()).state().count;
    take_weights(*run);
    const core::BeatState state = core::BeatReader(file.get()).state();
    const bool is_heard = state.phase == core::Phase::kStarting && state.count >= before + 4;
    core::log("{}", is_heard ? "heard" : "nothing heard");
  });
  CAPTURE(log);
  CHECK(log.starts_with(folder + ": 4 tensors taken, 0 adapted"));
  CHECK(log.ends_with("\nheard\n"));
}

}  // namespace scaletrain::train
