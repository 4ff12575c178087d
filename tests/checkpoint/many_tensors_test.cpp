// A checkpoint of 65,536 small tensors, as a model of experts has.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/share.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::checkpoint {
namespace {

constexpr int kTensors = 65'536;

std::string name_of(int i) { return fmt::format("experts.{:05}.weight", i); }

// Of a tensor a float of its own in each of its four elements.
FullContents many(double sign) {
  const at::Tensor values = at::arange(4 * kTensors, at::kFloat).mul(sign).view({kTensors, 2, 2});
  FullContents contents;
  for (int i = 0; i < kTensors; ++i) contents.model[name_of(i)] = values[i].clone();
  contents.optimizer["step"] = at::full({}, sign);
  contents.state.step = 3;
  contents.recipe = "{}";
  return contents;
}

bool are_equal(const Tensors& one, const Tensors& other) {
  return one.size() == other.size() && std::ranges::all_of(one, [&](const auto& item) {
           return at::equal(item.second, other.at(item.first));
         });
}

}  // namespace

TEST_CASE("65,536 tensors are saved, verified and loaded, whole and in pieces") {
  const FullContents saved = many(1);
  for (const bool in_pieces : {false, true}) {
    CAPTURE(in_pieces);
    const test::TemporaryFolder run;
    const Contents full = saved, share = in_pieces ? share_of(full, 0, 1) : full;
    const auto path = write(core::system_disk(), run.path, share).path;
    CHECK(format::verify_checkpoint(path).step == 3);
    FullContents loaded = many(-1);
    REQUIRE(!are_equal(saved.model, loaded.model));
    load(path, loaded);
    const bool is_same = are_equal(saved.model, loaded.model);
    CHECK(is_same);
    CHECK(loaded.optimizer.at("step").item<float>() == 1);
  }
}

TEST_CASE("a missing tensor is named among 65,536 tensors") {
  const test::TemporaryFolder run;
  FullContents saved = many(1);
  saved.model.erase(name_of(40'000));
  const auto path = write(core::system_disk(), run.path, saved).path;
  FullContents loaded = many(-1);
  std::string said;
  try {
    load(path, loaded);
  } catch (const core::CheckpointError& error) {
    said = error.what();
  }
  CHECK(said.find(name_of(40'000)) != std::string::npos);
}

}  // namespace scaletrain::checkpoint
