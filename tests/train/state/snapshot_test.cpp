#include "lib/train/state/snapshot.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/log.h"
#include "lib/core/process/beat.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/loop/saves.h"
#include "lib/train/run/state_shards.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// What a save copies while the next step computes its gradients.
std::vector<at::Tensor> copied_late(const checkpoint::Contents& contents) {
  std::vector<at::Tensor> result;
  for (const checkpoint::TensorFile& file : contents.files) {
    if (file.kind == checkpoint::TensorFile::Kind::kPerRank) continue;
    for (const auto& [name, tensor] : local_tensors(file.shards)) result.push_back(tensor);
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

// What a rank holds, and what it computes with, each by the sum of its elements.
std::string numbers_of(Run& run) {
  std::string text;
  const auto say = [&text](const at::Tensor& tensor) {
    text += fmt::format("{} ", tensor.to(at::kDouble).sum().item<double>());
  };
  for (const auto& [name, tensor] : local_tensors(model_shards(run))) say(tensor);
  for (const at::Tensor& tensor : run.learner.model->parameters()) {
    if (tensor.storage().nbytes() > 0) say(tensor);  // others come when they are needed
  }
  return text;
}

// Replicas that have sent states of the trained model.
struct OtherStates : local_sgd::Replicas {
  OtherStates() { states_.present = {1}; }
};

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

TEST_CASE("ranks that have parts of tensors save the whole of each") {
  const testing::TinyRun tiny;
  const auto saved = [&](const std::string& parallel, const core::WorkerEnv& env) {
    const auto run = build_run(tiny.recipe({testing::kVitChange, "ema.decay=0.5",
                                            R"(optimizer={"name": "adamw", "lr": 0.1})", parallel}),
                               env, std::nullopt, {});
    for (const auto& [name, tensor] : local_tensors(run->learner.optimizer->state()))
      tensor.fill_(2);
    const checkpoint::FullContents contents(snapshot(*run));
    std::string text;
    const auto say = [&text](const char* of, const NamedTensors& tensors) {
      for (const auto& [name, tensor] : tensors) {
        text += fmt::format("{} {} {} {}\n", of, name, fmt::join(tensor.sizes(), "x"),
                            tensor.to(at::kDouble).sum().item<double>());
      }
    };
    say("model", contents.model);
    for (const auto& [name, mean] : contents.means) say("mean", mean.tensors);
    say("optimizer", contents.optimizer);
    run->mesh->end("end");
    return text;
  };
  const std::string one = testing::said_apart([&] { return saved("parallel.tensor=1", {}); });
  CHECK(std::ranges::count(one, '\n') > 100);
  for (const auto& rank : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         return saved("parallel.tensor=2", env);
       })) {
    CHECK(rank.text == one);
  }
}

TEST_CASE("a snapshot has the model, the optimizer, the state and the recipe") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
          run->state.step = 2;
          const checkpoint::FullContents contents(snapshot(*run));
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
    const at::Tensor momentum = run->learner.optimizer->state().begin()->second.tensor;
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

TEST_CASE(
    "a snapshot has the classes, where gradients travel and what was seen of streamed shards") {
  const testing::TinyRun tiny;
  std::ofstream(tiny.path("classes.json")) << R"(["a", "b", "c"])";
  for (const auto& rank : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run =
             build_run(tiny.recipe({"data.order=streamed", "data.lanes=2"}), env, std::nullopt, {});
         const checkpoint::Contents contents = snapshot(*run);
         const auto& layout = contents.state.bucket_layout;
         std::string said = fmt::format("{} {} {}", fmt::join(contents.classes, ","),
                                        !layout.empty() && layout == run->placement->layout(),
                                        contents.state.shard_sizes.size());
         run->mesh->end("end");
         return said;
       })) {
    CHECK(rank.text == "a,b,c true 1");
  }
}

TEST_CASE("a snapshot has the buffers of all stages of a pipeline as their stages have them") {
  const testing::TinyRun tiny;
  for (const auto& rank : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         const auto run = build_run(
             tiny.recipe({R"(model={"name": "resnet18", "num_classes": 3})", "parallel.pipeline=2",
                          R"(batch={"per_device": 2, "accumulate": 2})"}),
             env, std::nullopt, {});
         const NamedTensors buffers = run->learner.buffers();
         for (const auto& [name, tensor] : buffers) {
           tensor.fill_(run->pipeline->has(name) ? 1 + env.rank : 7);
         }
         const checkpoint::FullContents contents(snapshot(*run));
         int own = 0, others = 0, wrong = 0;
         for (const auto& [name, tensor] : buffers) {
           const bool is_own = run->pipeline->has(name);
           ++(is_own ? own : others);
           const int expected = is_own ? 1 + env.rank : 2 - env.rank;
           if (!contents.model.at(name).eq(expected).all().item<bool>()) ++wrong;
         }
         run->mesh->end("end");
         return fmt::format("{} {} {}", own > 0, others > 0, wrong);
       })) {
    CHECK(rank.text == "true true 0");
  }
}

TEST_CASE("each rank takes over what it has of the best model") {
  struct Case {
    int ranks;
    std::vector<std::string> changes;
  };
  const std::string batch = R"(batch={"global": 4, "per_device": 2})";
  const std::vector<Case> cases{
      {1, {}},
      {1, {R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})"}},
      {2, {batch}},
      {2, {batch, "parallel.shard=2", "parallel.shard_level=optimizer"}},
      {2, {batch, "parallel.shard=2", "parallel.shard_level=parameters"}},
      {2, {testing::kVitChange, "parallel.tensor=2"}},
  };
  for (const Case& one : cases) {
    const testing::TinyRun tiny;
    CAPTURE(fmt::to_string(fmt::join(one.changes, " ")));
    for (const auto& rank :
         testing::run_ranks({.world_size = one.ranks}, [&](const core::WorkerEnv& env) {
           const core::Descriptor file = core::make_beat_file();
           const auto run =
               build_run(tiny.recipe(one.changes), env, std::nullopt, core::Beat(file.get()));
           run->state.step = run->state.step_in_epoch = run->state.best_step = 2;
           run->state.samples = 8;
           run->state.best_metric = 0.5;
           run->state.best_steps = {{2, 0.5}};
           for (const auto& [name, shard] : run->learner.optimizer->state()) {
             if (name == "step") shard.tensor.fill_(2);
           }
           const std::string best = numbers_of(*run);
           Reporter reporter(*run, env, std::nullopt, /*late=*/false);
           Saves saves(*run, reporter);
           saves.save();
           saves.finish();
           run->mesh->world().barrier("saved");
           for (const auto& [name, tensor] : local_tensors(model_shards(*run))) tensor.fill_(7);
           run->engine->weights_changed();
           const bool has_changed = numbers_of(*run) != best;
           run->replicas = std::make_unique<OtherStates>();
           run->state.step = 4;
           run->beat.enter(core::Phase::kCompute);
           const std::int64_t step = load_best_model(*run)->best_step;
           const core::Phase phase = core::BeatReader(file.get()).state().phase;
           std::string said =
               fmt::format("{} {} step {}, {} replicas, {} evaluated with others, {}", has_changed,
                           numbers_of(*run) == best, step, run->replicas->states().present.size(),
                           run->learner.evaluation_weights().size(),
                           env.rank == 0 ? core::to_text(phase) : "not asked");
           run->mesh->end("end");
           return said;
         })) {
      CAPTURE(rank.text);
      CHECK(rank.text.starts_with("true true step 2, 0 replicas, 0 evaluated with others, "));
      CHECK((rank.text.ends_with("validating") || rank.text.ends_with("not asked")));
    }
  }
}

TEST_CASE("the best model is the mean where a run has one") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe({"ema.decay=0.5"}), {}, std::nullopt, {});
          run->state.step = run->state.step_in_epoch = run->state.best_step = 2;
          run->state.samples = 8;
          run->state.best_metric = 0.5;
          run->state.best_steps = {{2, 0.5}};
          const at::Tensor weight = run->learner.tensors().at("head.weight");
          weight.fill_(0.25);
          run->means.front()->state().at("head.weight").tensor.fill_(0.5);
          checkpoint::save(core::system_disk(), run->recipe.output, snapshot(*run), {.last = 3});
          load_best_model(*run);
          return fmt::format("{}", weight[0][0].item<float>());
        }) == "0.5");
}

}  // namespace scaletrain::train
