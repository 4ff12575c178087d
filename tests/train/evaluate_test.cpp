#include "lib/train/evaluate.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/signals.h"
#include "lib/train/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

// The loss of the whole validation set at once, in evaluation mode.
double loss_at_once(Run& run) {
  const at::NoGradGuard no_grad;
  data::BatchStream& stream = *run.sets.stream(task::Split::kVal);
  stream.seek({});
  run.learner.model->eval();
  double sum = 0;
  while (const auto batch = stream.next()) {
    const task::Example example = run.task->prepare(*batch, false);
    sum += at::cross_entropy_loss(run.learner.model->forward(example.input), example.target, {},
                                  at::Reduction::Sum)
               .item<double>();
  }
  run.learner.model->train();
  return sum / 10;
}

std::string measured(const EvalResult& result) {
  std::string text;
  for (const auto& [measure, value] : result.measures) {
    text += fmt::format("{} {:.4f} ", measure->name, value);
  }
  return text;
}

}  // namespace

TEST_CASE("every sample is measured once, in evaluation mode, and training goes on as before") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const auto run = build_run(tiny.recipe({"model.dropout=0.5"}), {}, std::nullopt, {});
    const double expected = loss_at_once(*run);
    const EvalResult first = evaluate(*run, task::Split::kVal);
    const EvalResult again = evaluate(*run, task::Split::kVal);
    return fmt::format("{} {} {} {} {}", first.count,
                       std::abs(first.measures.back().value - expected) < 1e-6,
                       measured(first) == measured(again), run->learner.model->is_training(),
                       first.measures.front().measure->name);
  });
  CHECK(said == "10 true true true top1");
}

TEST_CASE("the whole set is measured on any number of ranks") {
  const testing::TinyRun tiny;
  const std::string one = testing::said_apart([&] {
    return measured(evaluate(*build_run(tiny.recipe(), {}, std::nullopt, {}), task::Split::kVal));
  });
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         return measured(
             evaluate(*build_run(tiny.recipe(), env, std::nullopt, {}), task::Split::kVal));
       })) {
    CHECK(result.text == one);
  }
}

TEST_CASE("measures that are no sums are of all samples on any number of ranks") {
  const testing::TinyRun tiny;
  const auto recipe = tiny.recipe({"task=multi_label_classification", "loss=binary_cross_entropy"});
  const std::string one = testing::said_apart([&] {
    const auto run = build_run(recipe, {}, std::nullopt, {});
    const std::string said = measured(evaluate(*run, task::Split::kVal));
    return measured(evaluate(*run, task::Split::kVal)) == said ? said : "not the same again";
  });
  CHECK(one.starts_with("map 0."));
  CHECK(one.find("micro_f1") != std::string::npos);
  for (const int ranks : {2, 3}) {
    for (const auto& result :
         testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
           const auto run = build_run(recipe, env, std::nullopt, {});
           std::string said = measured(evaluate(*run, task::Split::kVal));
           run->mesh->end("end");
           return said;
         })) {
      CHECK(result.text == one);
    }
  }
}

TEST_CASE("what ranks with the same data coordinate measure counts once") {
  const testing::TinyRun tiny;
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run = build_run(tiny.recipe({R"(model={"name": "vit_tiny", "num_classes": 3,
             "patch_size": 4, "dim": 8, "depth": 1, "heads": 2})",
                                                 "parallel.tensor=2"}),
                                    env, std::nullopt, {});
         std::string said = fmt::format("{}", evaluate(*run, task::Split::kVal).count);
         run->mesh->end("end");
         return said;
       })) {
    CHECK(result.text == "10");  // both have read all of them
  }
}

}  // namespace scaletrain::train
