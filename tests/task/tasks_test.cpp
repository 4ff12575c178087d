#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lib/data/loader/image_batch.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"
#include "lib/task/task.h"

namespace scaletrain::task {
namespace {

recipe::Recipe recipe_of(const std::string& task) {
  recipe::Recipe recipe = recipe::blank_recipe();
  recipe.task = task;
  recipe.model.num_classes = 7;
  recipe.model.options["vocab_size"] = std::int64_t{11};
  return recipe;
}

std::map<std::string, double> finished(const Task& task, const at::Tensor& sums,
                                       const at::Tensor& scores = {}) {
  const at::Tensor host = sums.contiguous();
  std::map<std::string, double> result;
  const std::span<const double> values(host.const_data_ptr<double>(),
                                       static_cast<std::size_t>(task.sum_count()));
  for (const auto& [measure, value] : task.finish(Split::kVal, values, scores)) {
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

TEST_CASE("a class may weigh more, in training alone and where targets are not mixed") {
  recipe::Recipe recipe = recipe_of("image_classification");
  recipe.loss.class_weights = {1, 2, 3, 4, 5, 6, 0.5};
  const auto pool = core::make_host_pool();
  data::Batch batch;
  batch.columns = data::Columns({{data::Element::kUint8, 3}, {data::Element::kInt64, 1}}, 3, *pool);
  batch.count = batch.targets = 3;
  std::ranges::copy(std::array<std::int64_t, 3>{0, 6, 6}, data::labels_of(batch).begin());
  const auto weighted = make_task(recipe, at::kCPU);
  CHECK(weighted->fixed_targets(12) == 0);
  CHECK(weighted->weight_of(batch) == 2);  // 1 + 0.5 + 0.5
  const at::Tensor logits = at::zeros({3, 7}), targets = at::tensor({0, 6, 6}, at::kLong);
  CHECK(weighted->loss_sum(logits, {{}, targets}).item<double>() ==
        doctest::Approx(2 * std::log(7)));
  CHECK(weighted->sums(logits, {{}, targets})[0].item<double>() ==
        doctest::Approx(3 * std::log(7)));
  recipe.mix = recipe::Mix{.mixup = 0.2};
  const auto mixed = make_task(recipe, at::kCPU);
  CHECK(mixed->fixed_targets(12) == 12);
  CHECK(mixed->weight_of(batch) == 3);
}

TEST_CASE("many classes an image are measured by mean average precision and F1") {
  recipe::Recipe recipe = recipe_of("multi_label_classification");
  recipe.model.num_classes = 2;
  choose(recipe.loss, *recipe::losses().find("binary_cross_entropy"));
  const auto task = make_task(recipe, at::kCPU);
  // Class 0 is right but for one that is found and not there; class 1 is never found.
  const at::Tensor logits = at::tensor({3., -1., 2., -3., 1., -2., -1., -4.}).view({4, 2});
  const at::Tensor targets = at::tensor({1., 0., 0., 0., 1., 1., 0., 0.}).view({4, 2});
  const Example example{{}, targets.to(at::kFloat)};
  const at::Tensor output = logits.to(at::kFloat);
  auto found = finished(*task, task->sums(output, example), task->scores(output, example));
  CHECK(found.size() == 4);
  // Class 0: 1/1 at the first, 2/3 at the third; class 1: 1/2 at the second.
  CHECK(found["map"] == doctest::Approx(((1 + 2.0 / 3) / 2 + 0.5) / 2));
  CHECK(found["micro_f1"] == doctest::Approx(4.0 / 6));        // 2 hits, 3 there, 3 found
  CHECK(found["macro_f1"] == doctest::Approx((0.8 + 0) / 2));  // 2 x 2 / (2 + 3); none
  CHECK(found["loss"] == doctest::Approx(at::binary_cross_entropy_with_logits(
                                             logits, targets, {}, {}, at::Reduction::Mean)
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
  CHECK(sums.numel() == task->sum_count());
  CHECK(task->loss_sum(logits, {{}, targets}).item<double>() == doctest::Approx(20 * loss));
}

TEST_CASE("nothing was measured of an empty set") {
  for (const recipe::TaskRow& row : recipe::tasks()) {
    recipe::Recipe recipe = recipe_of(row.name);
    choose(recipe.loss, *recipe::losses().find(row.losses.front()));
    const auto task = make_task(recipe, at::kCPU);
    const auto found = finished(*task, at::zeros({task->sum_count()}, at::kDouble),
                                at::zeros({0, task->score_columns()}));
    CHECK(found.at("loss") == 0);
  }
}

}  // namespace scaletrain::task
