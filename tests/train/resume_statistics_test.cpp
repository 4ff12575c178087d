// A network with BatchNorm that is saved in mid-epoch on one mesh and goes on on another, in fp64:
// normalising makes much of the last bits of fp32.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "lib/format/rgb8.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"
#include "tests/train/moved_runs.h"

namespace scaletrain::testing {
namespace {

// `count` images of pixels without a pattern.
std::string drawn_images(int count) {
  constexpr int kSize = 8;
  std::mt19937 draws(7);
  std::string tar;
  for (int i = 0; i < count; ++i) {
    std::string pixels(kSize * kSize * 3, '\0');
    for (char& pixel : pixels) pixel = static_cast<char>(draws() % 256);
    tar += format::tar_member(fmt::format("{:03}.rgb8", i),
                              format::rgb8_header({kSize, kSize}) + pixels) +
           format::tar_member(fmt::format("{:03}.cls", i), std::to_string(i % 3));
  }
  return tar + format::tar_end();
}

TEST_CASE("a network with BatchNorm goes on from each mesh on the others") {
  const std::vector<MovedMesh> meshes{
      {"one", 1, "{}"},
      {"shard 2", 2, R"({"shard": 2, "shard_level": "gradients"})", 2},
      {"pipeline 2", 2, R"({"pipeline": 2})"},
      {"shard 4", 4, R"({"shard": 4})", 4},
      {"pipeline 2 x shard 2", 4, R"({"pipeline": 2, "shard": 2})", 2},
  };
  const test::TemporaryFolder folder;
  folder.write("train.tar", drawn_images(72));
  // The epoch has three steps: it ends, and the next one begins, behind the cut. A micro-batch of
  // fewer samples has too few values in the last maps for any precision.
  MovedRuns({R"(model={"name": "mobilenet_v3_small", "num_classes": 3})", "precision=fp64",
             fmt::format(R"(data.train={{"shards": "{}"}})", folder.file("train.tar")),
             R"(batch={"global": 24, "per_device": 6})",
             R"(optimizer={"name": "sgd", "lr": 0.001, "momentum": 0.9})"},
            meshes, /*has_statistics=*/true)
      .check();
}

}  // namespace
}  // namespace scaletrain::testing
