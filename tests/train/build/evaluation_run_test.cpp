#include "lib/train/build/evaluation_run.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/loop/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

std::string shown_measures(const EvalResult& result) {
  std::string text = fmt::format("{}", result.count);
  for (const auto& [measure, value] : result.measures) {
    text += fmt::format(" {} {:.6f}", measure->name, value);
  }
  return text;
}

}  // namespace

TEST_CASE("a checkpoint is measured on any number of ranks, without the training set") {
  const testing::TinyRun tiny;
  const std::string trained = testing::said_apart([&] {
    Trainer trainer(tiny.recipe(), {}, std::nullopt, {});
    static_cast<void>(trainer.run());
    return shown_measures(evaluate(
        *build_run(tiny.recipe(), {}, format::find_checkpoint(tiny.recipe().output, {}), {}),
        task::Split::kVal));
  });
  CHECK(trained.starts_with("10 top1 "));
  recipe::Recipe recipe = tiny.recipe();
  recipe.data.train = {};
  recipe.data.train.shards = {"/nowhere/a.tar"};
  const std::filesystem::path checkpoint = *format::find_checkpoint(recipe.output, {});
  for (const int ranks : {1, 2, 3}) {
    for (const auto& result :
         testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
           const auto run = build_evaluation(recipe, env, {checkpoint}, task::Split::kVal);
           std::int64_t seen = 0;
           std::string text = shown_measures(
               evaluate(*run, task::Split::kVal,
                        [&seen](const data::Batch& batch, const task::Example& example,
                                const at::Tensor& output) {
                          seen += batch.count == example.target.size(0) ? output.size(0) : 1000;
                        }));
           run->mesh->end("end");
           return text + (ranks == 1 ? fmt::format(" {}", seen) : "");
         })) {
      CHECK(result.text == trained + (ranks == 1 ? " 10" : ""));
    }
  }
}

}  // namespace scaletrain::train
