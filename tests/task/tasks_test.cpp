#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "lib/recipe/describe.h"
#include "lib/task/task.h"

namespace scaletrain::task {
namespace {

recipe::Recipe recipe_of(const char* task) {
  recipe::Recipe recipe = recipe::blank_recipe();
  recipe.task = task;
  recipe.model.num_classes = 7;
  recipe.model.options["vocab_size"] = std::int64_t{11};
  return recipe;
}

std::map<std::string, double> finished(const Task& task, const at::Tensor& sums) {
  const at::Tensor host = sums.contiguous();
  std::map<std::string, double> result;
  const std::span<const double> values(host.const_data_ptr<double>(),
                                       static_cast<std::size_t>(task.sum_count()));
  for (const auto& [measure, value] : task.finish(Split::kVal, values, {})) {
    result[measure->name] = value;
  }
  return result;
}

}  // namespace

TEST_CASE("images are measured by hits at one and at five, and by the loss without smoothing") {
  recipe::Recipe recipe = recipe_of("image_classification");
  recipe.loss.label_smoothing = 0.3;
  const auto task = make_task(recipe, at::kCPU);
  at::manual_seed(1);
  const at::Tensor logits = at::randn({40, 7}), targets = at::randint(7, {40}, at::kLong);
  // Two batches are added up.
  at::Tensor sums = at::zeros({task->sum_count()}, at::kDouble);
  for (const std::int64_t begin : {0, 15}) {
    const std::int64_t count = begin == 0 ? 15 : 25;
    sums += task->sums(logits.narrow(0, begin, count), {{}, targets.narrow(0, begin, count)});
  }
  double hits1 = 0, hits5 = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const at::Tensor order = logits[i].argsort(0, /*descending=*/true);
    for (std::int64_t place = 0; place < 5; ++place) {
      if (order[place].item<std::int64_t>() != targets[i].item<std::int64_t>()) continue;
      ++hits5;
      if (place == 0) ++hits1;
    }
  }
  auto found = finished(*task, sums);
  CHECK(found.size() == 3);
  CHECK(found["top1"] == doctest::Approx(hits1 / 40));
  CHECK(found["top5"] == doctest::Approx(hits5 / 40));
  CHECK(found["loss"] == doctest::Approx(at::cross_entropy_loss(logits, targets).item<double>()));
  CHECK(sums[Task::kTargets].item<double>() == 40);
  const double smoothed = task->loss_sum(logits, {{}, targets}).item<double>() / 40;
  CHECK(smoothed ==
        doctest::Approx(at::cross_entropy_loss(logits, targets, {}, at::Reduction::Mean, -100, 0.3)
                            .item<double>()));
  CHECK(task->fixed_targets(12) == 12);
}

TEST_CASE("texts are measured over the targets that count") {
  const auto task = make_task(recipe_of("language_modelling"), at::kCPU);
  at::manual_seed(2);
  const at::Tensor logits = at::randn({3, 8, 11});
  at::Tensor targets = at::randint(11, {3, 8}, at::kLong);
  targets[1].narrow(0, 2, 4).fill_(-100);
  const at::Tensor sums = task->sums(logits, {{}, targets});
  const double loss =
      at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten()).item<double>();
  auto found = finished(*task, sums);
  CHECK(found["loss"] == doctest::Approx(loss));
  CHECK(found["perplexity"] == doctest::Approx(std::exp(loss)));
  CHECK(found.count("bits_per_byte") == 0);  // nothing says how many bytes there were
  CHECK(sums[Task::kTargets].item<double>() == 20);
  CHECK(task->loss_sum(logits, {{}, targets}).item<double>() == doctest::Approx(20 * loss));
}

TEST_CASE("nothing was measured of an empty set") {
  for (const char* name : {"image_classification", "language_modelling"}) {
    const auto task = make_task(recipe_of(name), at::kCPU);
    const auto found = finished(*task, at::zeros({task->sum_count()}, at::kDouble));
    CHECK(found.at("loss") == 0);
  }
}

}  // namespace scaletrain::task
