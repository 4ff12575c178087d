#include "lib/train/snapshot.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/disk.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/train/build.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {

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
