#include "lib/train/state/resume.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/disk/disk.h"
#include "lib/core/log.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/state/snapshot.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Run> build(const recipe::Recipe& recipe,
                           const std::optional<fs::path>& resume = std::nullopt) {
  return build_run(recipe, {}, resume, {});
}

// Saves `run` as if three steps were done and the second had been the best.
fs::path save(Run& run) {
  for (const auto& [name, tensor] : run.learner.tensors()) tensor.fill_(0.25);
  for (const auto& [name, tensor] : local_tensors(run.learner.optimizer->state()))
    tensor.fill_(0.5);
  run.state.step = run.state.step_in_epoch = 3;
  run.state.samples = 12;
  if (run.length.growing) stand_at(*run.length.growing, run.state);
  run.state.best_step = 3;
  run.state.best_metric = 0.75;
  run.state.best_steps = {{3, 0.75}};
  return checkpoint::save(core::system_disk(), run.recipe.output, snapshot(run), {.last = 3});
}

std::string standing(const Run& run) {
  return fmt::format("step {}, saved {}, best {} {}", run.state.step, run.is_saved,
                     run.state.best_step, run.state.best_metric);
}

bool all(const NamedTensors& tensors, double value) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const auto& item) {
    return item.second.eq(value).all().template item<bool>();
  });
}

// What a run saved by `recipe` says when it goes on as `changed`.
std::string resumed(const recipe::Recipe& recipe, const recipe::Recipe& changed) {
  return testing::said_apart([&] {
    const fs::path checkpoint = save(*build(recipe));
    std::string said;
    core::set_warning_listener([&](const std::string& line) { said += line + "; "; });
    const auto run = build(changed, checkpoint);
    const bool same = all(run->learner.tensors(), 0.25) &&
                      all(local_tensors(run->learner.optimizer->state()), 0.5);
    return said + standing(*run) + (same ? ", same tensors" : ", other tensors");
  });
}

}  // namespace

TEST_CASE("a run goes on with the checkpoint's tensors, its place and its best") {
  const testing::TinyRun tiny;
  CHECK(resumed(tiny.recipe(), tiny.recipe()) == "step 3, saved true, best 3 0.75, same tensors");
}

TEST_CASE("a run goes on with the checkpoint's class names, and with no other") {
  const testing::TinyRun tiny;
  const std::string file = tiny.path("classes.json");
  const auto with_classes = [&](const char* names) {
    std::ofstream(file) << names;
    return testing::said_apart([&] {
      fs::path checkpoint = fs::path(tiny.recipe().output) / "checkpoints/step-00000003";
      if (!fs::exists(checkpoint)) checkpoint = save(*build(tiny.recipe()));
      return fmt::format(
          "{}", fmt::join(build(tiny.recipe(), checkpoint)->sets.train.set->classes(), " "));
    });
  };
  CHECK(with_classes(R"(["a", "b", "c"])") == "a b c");
  CHECK(with_classes(R"(["c", "a", "b"])") == "a b c");
  CHECK(with_classes(R"(["a", "b", "x"])")
            .find(file + ": has the class \"x\", which the checkpoint does not have\n"
                         "  the checkpoint has \"a\", \"b\", \"c\"") != std::string::npos);
  CHECK(with_classes("[]") == "a b c");
}

TEST_CASE("in another folder nothing is the best yet") {
  const testing::TinyRun tiny;
  const std::string said = resumed(tiny.recipe(), tiny.recipe({"output=" + tiny.path("other")}));
  CHECK(said.find("the best checkpoint is not in this run's folder") != std::string::npos);
  CHECK(said.ends_with("step 3, saved false, best -1 -1, same tensors"));
}

TEST_CASE("another best.metric resets the best checkpoint") {
  const testing::TinyRun tiny;
  const std::string said = resumed(tiny.recipe(), tiny.recipe({"checkpoint={\"best\":\"loss\"}"}));
  CHECK(said.find("was chosen by top1 and is now chosen by loss") != std::string::npos);
  CHECK(said.ends_with("step 3, saved true, best -1 -1, same tensors"));
  // Also where none is kept: a loss is no share of samples.
  const std::string none_kept =
      resumed(tiny.recipe(), tiny.recipe({R"(checkpoint={"best": "loss", "keep_best": 0})"}));
  CHECK(none_kept.ends_with("step 3, saved true, best -1 -1, same tensors"));
}

TEST_CASE("changing best.weights between model and ema resets the best checkpoint") {
  const testing::TinyRun tiny;
  const std::string said = resumed(tiny.recipe(), tiny.recipe({"ema={}"}));
  CHECK(said.find("was chosen by top1 and is now chosen by ema/top1") != std::string::npos);
  CHECK(said.find("the checkpoint has no ema: it starts from the model's weights") !=
        std::string::npos);
  const recipe::Recipe by_model = tiny.recipe({"ema={}", "checkpoint.best.weights=model"});
  CHECK(resumed(tiny.recipe(), by_model).find("best 3 0.75") != std::string::npos);
}

TEST_CASE("each rank goes on with the ema of its own buffers, and with its count") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({R"(model={"name": "resnet18", "num_classes": 3})", "ema={\"warmup\": true}"});
  const std::string mean = "bn1.running_mean", weight = "fc.weight";
  const auto first = [](const at::Tensor& tensor) { return tensor.flatten()[0].item<double>(); };
  const auto save_filled = [&](const core::WorkerEnv& env) {
    const auto run = build_run(recipe, env, std::nullopt, {});
    for (const auto& [name, tensor] : local_tensors(run->means[0]->state())) tensor.fill_(0.25);
    run->buffers_of(*run->means[0]).at(mean).fill_(0.25 + env.rank);
    run->state.step = run->state.step_in_epoch = 2;
    run->state.samples = 16;
    run->state.ema_updates = 2;
    const checkpoint::Contents contents = snapshot(*run);
    if (env.rank == 0) checkpoint::save(core::system_disk(), recipe.output, contents, {.last = 3});
    return fmt::format("{}",
                       first(checkpoint::FullContents(contents).means.at("ema").tensors.at(mean)));
  };
  for (const auto& result : testing::run_ranks({.world_size = 2}, save_filled)) {
    CHECK(result.text == "0.75");
  }
  const fs::path path = fs::path(recipe.output) / "checkpoints/step-00000002";
  const auto go_on = [&](const core::WorkerEnv& env) {
    const auto run = build_run(recipe, env, path, {});
    const double own = first(run->buffers_of(*run->means[0]).at(mean)) - env.rank;
    run->learner.tensors().at(weight).fill_(1);
    run->means[0]->update(2, at::zeros({}));  // 1 - 3^(-2/3) of 0.25 is kept
    return fmt::format("{} {:.4f}", own, first(run->means[0]->state().at(weight).tensor));
  };
  for (const auto& result : testing::run_ranks({.world_size = 2}, go_on)) {
    CHECK(result.text == "0.25 0.6106");
  }
}

TEST_CASE("another ramp of the global batch is refused") {
  const testing::TinyRun tiny;
  const auto growing = [&](int samples) {
    return tiny.recipe({fmt::format(R"(batch={{"global": 12, "per_device": 4, "ramp": {{"start": 4,
                                       "increment": 8, "samples": {}}}}})",
                                    samples)});
  };
  const std::string other =
      ", and in the checkpoint's run the batch grows from 4 by 8 over 9 samples\n"
      "  use that ramp: the number of samples of each step depends on it";
  CHECK(resumed(growing(9), growing(12)) ==
        "/batch/ramp: the batch grows from 4 by 8 over 12 samples" + other);
  CHECK(resumed(growing(9), tiny.recipe({R"(batch={"global": 12, "per_device": 4})"})) ==
        "/batch/ramp: the batch does not grow" + other);
}

TEST_CASE("another global batch is refused with what would be right") {
  const testing::TinyRun tiny;
  CHECK(resumed(tiny.recipe(), tiny.recipe({"batch.per_device=8"})) ==
        "/batch: the global batch is 8, the checkpoint's was 4\n  start 1 rank (--nproc), as it "
        "had, or set {\"global\": 4, \"per_device\": N} with N a divisor for 1 rank");
}

TEST_CASE("what is not as it was is warned about") {
  const testing::TinyRun tiny;
  CHECK(resumed(tiny.recipe(), tiny.recipe({"threads=2"}))
            .find("the resumed run is not bit for bit equal: threads per rank 2, was 1") !=
        std::string::npos);
}

}  // namespace scaletrain::train
