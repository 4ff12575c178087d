// What a batch of images of many classes becomes; what is measured is in tests/task/tasks_test.cpp.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

#include "lib/format/rgb8.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"
#include "lib/task/task.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::task {

TEST_CASE("the classes of images become flags, which are mixed in training alone") {
  const test::TemporaryFolder folder;
  std::string tar;
  for (const auto& [key, classes] : {std::pair("a", "[0, 2]"), std::pair("b", "1")}) {
    tar += format::tar_member(std::string(key) + ".rgb8",
                              format::rgb8_header({4, 4}) + std::string(48, key[0])) +
           format::tar_member(std::string(key) + ".cls", classes);
  }
  recipe::Recipe recipe = recipe::blank_recipe();
  recipe.task = "multi_label_classification";
  recipe.model.num_classes = 3;
  choose(recipe.loss, *recipe::losses().find("binary_cross_entropy"));
  recipe.data.image_size = 4;
  recipe.data.val.emplace().shards = {folder.write("set.tar", tar + format::tar_end())};
  const auto pool = core::make_host_pool();
  const auto task = make_task(recipe, at::kCPU);
  const OpenSet open = task->open(Split::kVal, {.slice = {.per_device = 2}, .stores = {}}, *pool);
  const data::Batch batch = *open.stream->next();
  const at::Tensor flags = at::tensor({1., 0., 1., 0., 1., 0.}).view({2, 3}).to(at::kFloat);
  for (const bool training : {false, true}) {
    const Example plain = task->prepare(batch, training);
    CHECK(plain.input.sizes() == at::IntArrayRef({2, 3, 4, 4}));
    CHECK(at::equal(plain.target, flags));
  }

  const at::Tensor output = at::arange(6, at::kFloat).view({2, 3}) - 2;
  const Example example = task->prepare(batch, /*training=*/true);
  CHECK(task->loss_sum(output, example).item<double>() ==
        doctest::Approx(2 * at::binary_cross_entropy_with_logits(output, flags).item<double>()));
  CHECK(task->sums(output, example).numel() == task->sum_count());
  CHECK(task->scores(output, example).size(1) == task->score_columns());
  CHECK(task->exclusive_classes() == 0);
  CHECK(task->independent_classes() == 3);

  recipe.mix.emplace().mixup = 1;
  const auto mixing = make_task(recipe, at::kCPU);
  CHECK(at::equal(mixing->prepare(batch, /*training=*/false).target, flags));
  const at::Tensor mixed = mixing->prepare(batch, /*training=*/true).target;
  CHECK(at::allclose(mixed.sum(0), at::ones({3})));  // of two images, shares of each other
  CHECK_FALSE(at::equal(mixed, flags));
}

}  // namespace scaletrain::task
