#include "lib/train/snapshot.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/core/disk.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/train/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

// What a save copies while the next step computes its gradients.
std::vector<at::Tensor> copied_late(const checkpoint::Contents& contents) {
  std::vector<at::Tensor> result;
  const auto add = [&result](const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) result.push_back(tensor);
  };
  add(contents.model);
  add(contents.optimizer);
  for (const auto& [name, mean] : contents.means) {
    add(mean.tensors);
    add(mean.buffers);
  }
  return result;
}

// Whether a snapshot behind the second step stands until the third one's update, of which it says
// that too; of how many tensors.
std::string third_step(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
  const auto run = build_run(recipe, env, std::nullopt, {});
  std::vector<at::Tensor> tensors, before;
  bool has_stood = false;
  const auto stands = [&] {
    return std::ranges::equal(tensors, before,
                              [](const auto& a, const auto& b) { return at::equal(a, b); });
  };
  StepRunner steps(step_parts(*run, [&] { has_stood = stands(); }), /*late=*/false);
  steps.run(0, 0.1, 0);
  steps.run(1, 0.1, 0);
  run->state.step = 2;
  {
    const checkpoint::Contents contents = snapshot(*run);
    tensors = copied_late(contents);
    if (!contents.stands) return std::string("is copied at once");
    for (const at::Tensor& tensor : tensors) before.push_back(tensor.clone());
  }
  steps.run(2, 0.1, 0);
  while (steps.drain()) {
  }
  run->mesh->end("the end");
  return fmt::format("{}, {}", has_stood ? "stands" : "changes",
                     tensors.size() < 2 || !stands() ? "then changes" : "never changes");
}

}  // namespace

TEST_CASE("what a snapshot names stays as it is until a step's update") {
  struct Case {
    const char* name;
    std::vector<std::string> changes;
    int ranks = 1;
    const char* said = "stands, then changes";
  };
  const Case cases[] = {
      {"BatchNorm and means",
       {R"(model={"name": "resnet18", "num_classes": 3})", "ema={\"decay\": [0.5, 0.9]}",
        R"(batch={"global": 4, "per_device": 2})"}},
      {"sam, dropout and a scaled loss",
       {R"(model={"name": "mlp", "num_classes": 3, "hidden": 8, "layers": 2, "dropout": 0.2})",
        "sam={}", R"(precision={"name": "fp16", "init_scale": 1024})"}},
      {"weights of their own",
       {R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})"},
       1,
       "is copied at once"},
      {"an optimizer in the host's memory", {"offload={\"optimizer\": true}"}},
      {"two ranks whose exchange has a state",
       {R"(compress={"name": "powersgd", "rank": 1})", R"(batch={"global": 4, "per_device": 2})"},
       2},
      {"two ranks with statistics of their own",
       {R"(model={"name": "resnet18", "num_classes": 3})",
        R"(batch={"global": 4, "per_device": 2})"},
       2},
      {"parts of parameters",
       {"parallel.shard=2", R"(optimizer={"name": "adamw", "lr": 0.1})",
        R"(batch={"global": 4, "per_device": 2})"},
       2},
      {"replicas that meet behind the step",
       {R"(sync={"name": "diloco", "steps": 1, "fragments": 1})",
        R"(batch={"global": 4, "per_device": 2})"},
       2},
      {"replicas that differ",
       {R"(sync={"name": "diloco", "steps": 4, "fragments": 2})",
        R"(batch={"global": 4, "per_device": 2})"},
       2,
       "is copied at once"},
      {"parts of tensors",
       {testing::kVitChange, "parallel.tensor=2", R"(batch={"global": 4, "per_device": 4})"},
       2,
       "is copied at once"},
  };
  const testing::TinyRun tiny;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const recipe::Recipe recipe = tiny.recipe(one.changes);
    for (const auto& rank :
         testing::run_ranks({.world_size = one.ranks}, [&](const core::WorkerEnv& env) {
           return third_step(recipe, one.ranks == 1 ? core::WorkerEnv{} : env);
         })) {
      CHECK(rank.text == one.said);
    }
  }
}

TEST_CASE("a snapshot has the model, the optimizer, the state and the recipe") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
          run->state.step = 2;
          const checkpoint::Contents contents = snapshot(*run);
          const at::Tensor live = run->learner.tensors().at("head.weight");
          return fmt::format("{} {} {} seed {} step {} lr {} {}", contents.model.size(),
                             contents.optimizer.size(),
                             contents.model.at("head.weight").is_same(live) ||
                                 contents.model.at("head.weight").data_ptr() == live.data_ptr(),
                             contents.state.random.at("seed").get<std::string>(),
                             contents.state.schedule.at("step").get<int>(),
                             contents.state.schedule.at("lr").get<double>(),
                             contents.recipe.find("\"mlp\"") != std::string::npos);
        }) == "4 4 true seed 0000000000000003 step 2 lr 0.1 true");
}

TEST_CASE("the best model is taken over, not its optimizer; a damaged one is left alone") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    std::string text;
    core::set_warning_listener([&](const std::string& line) { text += line + "; "; });
    const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
    const at::Tensor weight = run->learner.tensors().at("head.weight");
    const at::Tensor momentum = run->learner.optimizer->state().begin()->second;
    weight.fill_(0.25);
    run->state.step = run->state.step_in_epoch = run->state.best_step = 2;
    run->state.samples = 8;
    run->state.best_metric = 0.5;
    run->state.best_steps = {{2, 0.5}};
    checkpoint::save(core::system_disk(), run->recipe.output, snapshot(*run), {.last = 3});
    run->state.step = 4;
    weight.fill_(0.75);
    momentum.fill_(0.125);
    const std::int64_t best = load_best_model(*run)->step;
    text += fmt::format("of step {}, weight {}, momentum {}; ", best, weight[0][0].item<float>(),
                        momentum.flatten()[0].item<float>());
    weight.fill_(0.75);
    std::filesystem::resize_file(
        format::checkpoint_path(run->checkpoints(), 2) / "model.safetensors", 10);
    const bool is_taken = load_best_model(*run).has_value();
    return text + fmt::format("taken: {}, weight {}", is_taken, weight[0][0].item<float>());
  });
  CHECK(said.find("of step 2, weight 0.25, momentum 0.125; ") != std::string::npos);
  CHECK(said.find("the last model is tested, not the best") != std::string::npos);
  CHECK(said.ends_with("taken: false, weight 0.75"));
}

}  // namespace scaletrain::train
