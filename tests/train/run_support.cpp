#include "tests/train/run_support.h"

#include <fmt/format.h>

#include "lib/format/rgb8.h"
#include "lib/recipe/load.h"
#include "tests/dist/ranks.h"
#include "tests/format/tar_support.h"

namespace scaletrain::testing {
namespace {

constexpr std::int64_t kSize = 8;

// `count` images of one grey each; the label is the grey's number modulo 3.
std::string shard(int first, int count) {
  std::string tar;
  for (int i = first; i < first + count; ++i) {
    const std::string pixels(kSize * kSize * 3, static_cast<char>(10 * i));
    tar += format::tar_member(fmt::format("{:03}.rgb8", i),
                              format::rgb8_header({kSize, kSize}) + pixels) +
           format::tar_member(fmt::format("{:03}.cls", i), std::to_string(i % 3));
  }
  return tar + format::tar_end();
}

}  // namespace

TinyRun::TinyRun() {
  folder_.write("train.tar", shard(0, 24));
  folder_.write("val.tar", shard(3, 10));
}

recipe::Recipe TinyRun::recipe(const std::vector<std::string>& changes) const {
  return recipe::parse_recipe(
      fmt::format(R"({{"name": "tiny", "seed": 3, "steps": 4, "threads": 1, "device": "cpu",
        "model": {{"name": "mlp", "num_classes": 3, "hidden": 5, "layers": 1}},
        "data": {{"train": {{"shards": "{0}/train.tar"}}, "val": {{"shards": "{0}/val.tar"}},
                  "image_size": 8, "threads": 1}},
        "batch": {{"per_device": 4}}, "optimizer": {{"name": "sgd", "lr": 0.1, "momentum": 0.9}},
        "output": "{0}/run"}})",
                  folder_.path.string()),
      "tiny.json", changes);
}

std::string said_apart(const std::function<std::string()>& body) {
  return run_ranks({.world_size = 1}, [&](const core::WorkerEnv&) { return body(); })[0].text;
}

}  // namespace scaletrain::testing
