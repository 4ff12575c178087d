#include "lib/task/image_sets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/data/loader/image_batch.h"
#include "lib/format/rgb8.h"
#include "lib/recipe/load.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::task {
namespace {

// A tar of images of 8x8 of these classes.
std::string images_of(const std::vector<int>& classes) {
  std::string tar;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    tar += format::tar_member(fmt::format("{}.rgb8", i),
                              format::rgb8_header({8, 8}) + std::string(192, 'a')) +
           format::tar_member(fmt::format("{}.cls", i), std::to_string(classes[i]));
  }
  return tar + format::tar_end();
}

// Four images to train on and to validate with, of the classes 0, 1, 2, 3, and one of class 2 to
// test with.
recipe::Recipe recipe_in(const test::TemporaryFolder& folder) {
  folder.write("set.tar", images_of({0, 1, 2, 3}));
  folder.write("test.tar", images_of({2}));
  return recipe::parse_recipe(
      fmt::format(R"({{"model": {{"name": "mlp", "num_classes": 3}}, "epochs": 1,
        "data": {{"train": {{"shards": "{0}/set.tar"}}, "val": {{"shards": "{0}/set.tar"}},
                  "test": {{"shards": "{0}/test.tar"}}, "image_size": 8}},
        "optimizer": {{"name": "sgd", "lr": 0.1}}, "output": "{0}/run"}})",
                  folder.path.string()),
      "r.json");
}

// What one batch of training holds with `seed`, in its order.
std::vector<std::int64_t> trained_first(recipe::Recipe recipe, std::uint64_t seed) {
  recipe.seed = seed;
  const auto pool = core::make_host_pool();
  Reader reader;
  reader.slice.per_device = 4;
  const OpenSet open = ImageSets(recipe, 4).open(Split::kTrain, reader, *pool);
  const auto batch = open.stream->next();
  const auto labels = data::labels_of(*batch);
  return {labels.begin(), labels.end()};
}

std::ptrdiff_t threads_of_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

// The classes of `split`, or what was wrong with them.
std::string classes(const recipe::Recipe& recipe, std::int64_t num_classes, Split split) {
  const auto pool = core::make_host_pool();
  const ImageSets sets(recipe, num_classes);
  Reader reader;
  reader.slice.per_device = 4;
  const OpenSet open = sets.open(split, reader, *pool);
  try {
    open.stream->seek({});
    const auto batch = open.stream->next();
    CHECK(open.set->size() == batch->count);
    std::vector<std::int64_t> seen;
    for (const std::int64_t label : data::labels_of(*batch)) seen.push_back(label);
    std::sort(seen.begin(), seen.end());
    return fmt::format("{} contents {}", fmt::join(seen, " "), open.contents.empty() ? "-" : "+");
  } catch (const core::DataError& error) {
    return error.found();
  }
}

}  // namespace

TEST_CASE("images are read by split; only of the training set a digest is taken") {
  const test::TemporaryFolder folder;
  const recipe::Recipe recipe = recipe_in(folder);
  CHECK(classes(recipe, 4, Split::kTrain) == "0 1 2 3 contents +");
  CHECK(classes(recipe, 4, Split::kVal) == "0 1 2 3 contents -");
  CHECK(classes(recipe, 4, Split::kTest) == "2 contents -");
}

TEST_CASE("the order of a training is that of the recipe's seed") {
  const test::TemporaryFolder folder;
  const recipe::Recipe recipe = recipe_in(folder);
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    orders.insert(trained_first(recipe, seed));
    CHECK(orders.contains(trained_first(recipe, seed)));
  }
  CHECK(orders.size() > 1);
}

TEST_CASE("as many threads decode as the reader has") {
  const test::TemporaryFolder folder;
  const ImageSets sets(recipe_in(folder), 4);
  const auto pool = core::make_host_pool();
  const auto threads = [&](int wanted) {
    const std::ptrdiff_t before = threads_of_process();
    const OpenSet open =
        sets.open(Split::kVal, {.slice = {}, .threads = wanted, .stores = {}}, *pool);
    (void)open.stream->next();
    return threads_of_process() - before;
  };
  CHECK(threads(4) == threads(1) + 3);
}

TEST_CASE("a streamed order opens no shard before its time, and compares it with what was known") {
  const test::TemporaryFolder folder;
  recipe::Recipe recipe = recipe_in(folder);
  recipe.data.order = "streamed";
  recipe.data.lanes = 1;
  recipe.data.samples_per_epoch = 4;
  const ImageSets sets(recipe, 4);
  const auto pool = core::make_host_pool();
  Reader reader;
  reader.slice.per_device = 4;
  {
    const OpenSet open = sets.open(Split::kTrain, reader, *pool);
    CHECK(open.set->known_sizes() == std::vector<std::int64_t>{-1});
    CHECK(open.contents.empty());
    CHECK(open.stream->next()->count == 4);
    reader.shard_digests = open.set->open_digests();
  }
  reader.shard_sizes = {4};
  const OpenSet same = sets.open(Split::kTrain, reader, *pool);
  CHECK(same.set->known_sizes() == std::vector<std::int64_t>{4});
  CHECK(same.stream->next()->count == 4);
  ++reader.shard_digests[0];
  std::string said;
  core::set_warning_listener([&](const std::string& line) { said += line; });
  CHECK(sets.open(Split::kTrain, reader, *pool).stream->next()->count == 4);
  core::set_warning_listener({});
  CHECK(said.ends_with("set.tar holds other samples"));
}

TEST_CASE(
    "what is erased has the brightness that normalises to 0 where the model sees that alone") {
  const test::TemporaryFolder folder;
  recipe::Recipe recipe = recipe_in(folder);
  recipe.data.normalize.mean = {0.8, 0.4, 0.0};
  recipe.data.train.augment = recipe::parse_recipe(
                                  R"({"model": {"name": "mlp", "num_classes": 3}, "steps": 1,
          "data": {"train": {"shards": "a.tar", "augment": [
                     {"name": "random_erasing", "probability": 1}]}, "image_size": 8},
          "optimizer": {"name": "sgd", "lr": 0.1}})",
                                  "r.json")
                                  .data.train.augment;
  const auto erased = [&](std::int64_t channels) {
    recipe.model.in_channels = channels;
    const auto pool = core::make_host_pool();
    Reader reader;
    reader.slice.per_device = 4;
    const OpenSet open = ImageSets(recipe, 4).open(Split::kTrain, reader, *pool);
    const auto batch = open.stream->next();
    std::set<int> values;
    for (const std::uint8_t value : data::pixels_of(*batch)) values.insert(value);
    return values;
  };
  CHECK(erased(3) == std::set<int>{0, 97, 102, 204});  // 'a' is 97
  CHECK(erased(1) == std::set<int>{97, 102});          // 255 * (0.8 + 0.4) / 3
}

TEST_CASE("a class must be below the number of classes where the task looks at it") {
  const test::TemporaryFolder folder;
  const recipe::Recipe recipe = recipe_in(folder);
  CHECK(classes(recipe, 3, Split::kVal) == "label 3 is not in 0..2");
  CHECK(classes(recipe, ImageSets::kAnyClass, Split::kVal) == "0 1 2 3 contents -");
}

}  // namespace scaletrain::task
