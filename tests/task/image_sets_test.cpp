#include "lib/task/image_sets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/data/loader/image_batch.h"
#include "lib/format/rgb8.h"
#include "lib/recipe/load.h"
#include "tests/format/tar_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::task {
namespace {

// Four images of 8x8 in `folder`, of the classes 0, 1, 2, 3.
recipe::Recipe recipe_in(const test::TemporaryFolder& folder) {
  std::string tar;
  for (int i = 0; i < 4; ++i) {
    tar += format::tar_member(fmt::format("{}.rgb8", i),
                              format::rgb8_header({8, 8}) + std::string(192, 'a')) +
           format::tar_member(fmt::format("{}.cls", i), std::to_string(i));
  }
  folder.write("set.tar", tar + format::tar_end());
  return recipe::parse_recipe(
      fmt::format(R"({{"model": {{"name": "mlp", "num_classes": 3}}, "epochs": 1,
        "data": {{"train": {{"shards": "{0}/set.tar"}}, "val": {{"shards": "{0}/set.tar"}},
                  "image_size": 8}},
        "optimizer": {{"name": "sgd", "lr": 0.1}}, "output": "{0}/run"}})",
                  folder.path.string()),
      "r.json");
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
}

TEST_CASE("a class must be below the number of classes where the task looks at it") {
  const test::TemporaryFolder folder;
  const recipe::Recipe recipe = recipe_in(folder);
  CHECK(classes(recipe, 3, Split::kVal) == "label 3 is not in 0..2");
  CHECK(classes(recipe, ImageSets::kAnyClass, Split::kVal) == "0 1 2 3 contents -");
}

}  // namespace scaletrain::task
