// What a batch of images becomes; what is measured is in tests/task/tasks_test.cpp.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/core/error.h"
#include "lib/data/loader/image_batch.h"
#include "lib/format/rgb8.h"
#include "lib/recipe/describe.h"
#include "lib/task/task.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::task {

TEST_CASE("images are mixed in training alone, where the recipe asks for it") {
  constexpr std::int64_t kSide = 4, kClasses = 7;
  const auto pool = core::make_host_pool();
  data::Batch batch;
  batch.columns = data::Columns(
      {{data::Element::kUint8, kSide * kSide * 3}, {data::Element::kInt64, 1}}, 2, *pool);
  batch.count = 2;
  std::fill(data::pixels_of(batch).begin(), data::pixels_of(batch).end(), std::uint8_t{0});
  data::labels_of(batch)[0] = 3;
  data::labels_of(batch)[1] = 5;
  recipe::Recipe recipe = recipe::blank_recipe();
  recipe.task = "image_classification";
  recipe.model.num_classes = kClasses;
  recipe.data.image_size = kSide;
  const at::Tensor labels = at::tensor({3, 5}, at::kLong);
  for (const bool training : {false, true}) {
    CHECK(at::equal(make_task(recipe, at::kCPU)->prepare(batch, training).target, labels));
  }
  CHECK(make_task(recipe, at::kCPU)->exclusive_classes() == kClasses);
  CHECK(make_task(recipe, at::kCPU)->independent_classes() == 0);
  recipe.mix.emplace().mixup = 1;
  const auto task = make_task(recipe, at::kCPU);
  CHECK(at::equal(task->prepare(batch, /*training=*/false).target, labels));
  const Example mixed = task->prepare(batch, /*training=*/true);
  CHECK(mixed.input.sizes() == at::IntArrayRef({2, 3, kSide, kSide}));
  CHECK(mixed.target.sizes() == at::IntArrayRef({2, kClasses}));
  CHECK(at::allclose(mixed.target.sum(1), at::ones({2})));
}

TEST_CASE("the set of images is the recipe's, whose classes the model has") {
  const test::TemporaryFolder folder;
  const std::string tar =
      format::tar_member("a.rgb8", format::rgb8_header({4, 4}) + std::string(48, 'a')) +
      format::tar_member("a.cls", "6") + format::tar_end();
  recipe::Recipe recipe = recipe::blank_recipe();
  recipe.task = "image_classification";
  recipe.data.image_size = 4;
  recipe.data.val.emplace().shards = {folder.write("set.tar", tar)};
  const auto pool = core::make_host_pool();
  recipe.model.num_classes = 7;
  const OpenSet open = make_task(recipe, at::kCPU)->open(Split::kVal, {}, *pool);
  CHECK(data::labels_of(*open.stream->next())[0] == 6);
  recipe.model.num_classes = 6;
  const OpenSet other = make_task(recipe, at::kCPU)->open(Split::kVal, {}, *pool);
  CHECK_THROWS_AS((void)other.stream->next(), core::DataError);
}

}  // namespace scaletrain::task
