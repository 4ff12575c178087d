#include "lib/train/loop/pictures.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "lib/train/build/build.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

const recipe::Normalize kHalf{.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}};

std::int64_t files_of(const std::filesystem::path& folder) {
  std::int64_t count = 0;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    if (entry.path().extension() == ".png") ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a grid has the images side by side, as they were before they were normalized") {
  at::Tensor images = at::zeros({3, 3, 4, 5});
  images[0] = -1;  // black: (0 - 0.5) / 0.5
  images[1] = 1;   // white
  const data::Image grid = picture_grid(images, kHalf, 2);
  CHECK(grid.width == 2 * 5 + 2);
  CHECK(grid.height == 2 * 4 + 2);
  CHECK(static_cast<int>(grid.row(0)[0]) == 0);
  CHECK(static_cast<int>(grid.row(3)[4 * 3]) == 0);
  CHECK(static_cast<int>(grid.row(0)[5 * 3]) == 255);       // the gap
  CHECK(static_cast<int>(grid.row(0)[7 * 3]) == 255);       // the second image
  CHECK(static_cast<int>(grid.row(6)[0]) == 128);           // 0 is the mean: 127.5
  CHECK(static_cast<int>(grid.row(9)[11 * 3 + 2]) == 255);  // nothing is there
}

TEST_CASE("large images are scaled down, and images of one channel are gray") {
  CHECK(picture_grid(at::ones({1, 3, 300, 600}), kHalf, 1).width == 128);
  CHECK(picture_grid(at::ones({1, 3, 300, 600}), kHalf, 1).height == 64);
  const data::Image gray = picture_grid(at::zeros({1, 1, 2, 2}), kHalf, 1);
  CHECK(static_cast<int>(gray.row(0)[0]) == 128);
  CHECK(static_cast<int>(gray.row(0)[2]) == 128);
}

TEST_CASE("rank 0 writes the first batch once, and mistakes with their classes") {
  const testing::TinyRun tiny;
  const auto written = [&](const std::vector<std::string>& changes) {
    return testing::said_apart([&] {
      const auto run = build_run(tiny.recipe(changes), {}, std::nullopt, {});
      Pictures pictures(*run, {});
      const task::Example example{.input = at::zeros({3, 3, 8, 8}),
                                  .target = at::ones({3}, at::kLong)};
      pictures.batch(example);
      pictures.batch(example);
      const std::filesystem::path folder = std::filesystem::path(run->recipe.output) / "media";
      const std::int64_t batches = files_of(folder);
      at::Tensor output = at::zeros({3, 3});
      output[0][2] = 5;  // sure of a wrong class
      output[1][1] = 5;  // right
      output[2][0] = 1;
      if (const Watcher watcher = pictures.watcher()) watcher({}, example, output);
      pictures.write_mistakes("val", 7);
      const std::int64_t all = files_of(folder);
      const bool has_mistakes = std::filesystem::exists(folder / "step-00000007-val-worst.png");
      std::filesystem::remove_all(folder);
      return fmt::format("{} batch, {} in all, mistakes: {}", batches, all, has_mistakes);
    });
  };
  CHECK(written({"log.images=true"}) == "1 batch, 2 in all, mistakes: true");
  CHECK(written({}) == "0 batch, 0 in all, mistakes: false");
}

}  // namespace scaletrain::train
