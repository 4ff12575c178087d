#include "lib/train/model/learner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/log.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {

TEST_CASE("a learner has the model's parameters, whole and by name, and the schedule's rates") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({"schedule={\"warmup\":{\"steps\":2}}"});
  const Learner learner =
      build_learner(recipe, at::kCPU, {.steps_per_epoch = 6, .total_steps = 4}, 4);
  const std::vector<units::NamedParameter> parameters = learner.parameters();
  REQUIRE(parameters.size() == 4);
  CHECK(parameters[0].name == "fc1.weight");
  CHECK((parameters[0].shape() == std::vector<std::int64_t>{5, 192}));
  CHECK(parameters[1].dimensions() == 1);
  CHECK(parameters[0].tensor.requires_grad());
  CHECK_FALSE(parameters[0].is_head);
  CHECK(parameters[2].is_head);  // head.weight
  CHECK(learner.tensors().size() == 4);
  CHECK(learner.tensors().at("fc1.weight").sizes() == at::IntArrayRef{5, 192});
  CHECK(learner.buffers().empty());
  CHECK(learner.optimizer == nullptr);  // it is of what this rank owns
  CHECK(learner.schedule->lr(0) == doctest::Approx(0.05));
  CHECK(learner.schedule->lr(1) == doctest::Approx(0.1));
}

TEST_CASE("a warmup that does not end before the training is warned about") {
  const testing::TinyRun tiny;
  std::string said;
  core::set_warning_listener([&](const std::string& line) { said += line; });
  const Length length{.steps_per_epoch = 6, .total_steps = 4};
  warn_of_warmup(tiny.recipe(), length);
  warn_of_warmup(tiny.recipe({"schedule={\"warmup\":{\"steps\":4}}"}), length);
  CHECK(said.empty());
  warn_of_warmup(tiny.recipe({"schedule={\"warmup\":{\"epochs\":1}}"}), length);
  core::set_warning_listener(nullptr);
  CHECK(said.find("the warmup of 6 steps is longer than the training of 4") != std::string::npos);
}

}  // namespace scaletrain::train
