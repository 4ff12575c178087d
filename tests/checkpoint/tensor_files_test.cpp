#include "lib/checkpoint/tensor_files.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/share.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<std::string> names_of_files(const Contents& contents) {
  const test::TemporaryFolder folder;
  std::vector<std::string> names;
  const auto written = TensorFiles(contents).write(core::system_disk(), folder.path);
  for (const auto& [name, entry] : written.files) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("whole contents are a file of each kind, those of buffers where there are any") {
  using Names = std::vector<std::string>;
  FullContents contents;
  contents.model = {{"w", at::ones({4})}};
  CHECK(names_of_files(contents) == Names{"model.safetensors", "optimizer.safetensors"});
  contents.buffers = {{"b", at::ones({2, 2})}};
  contents.ranks = {{"r", at::ones({2})}};
  contents.means["ema"] = {.tensors = contents.model, .buffers = contents.buffers};
  CHECK(names_of_files(contents) == Names{"buffers.safetensors", "ema.safetensors",
                                          "ema_buffers.safetensors", "model.safetensors",
                                          "optimizer.safetensors", "ranks.safetensors"});
  CHECK(TensorFiles(contents).bytes() == 4 * (4 + 4 + 4 + 4 + 2));
  CHECK(names_of_files(share_of(contents, 1, 2)) == Names{"ema-00001-of-00001.safetensors"});
  CHECK(TensorFiles(share_of(contents, 0, 2)).bytes() == 4 * (4 + 4 + 4 + 4 + 2));
}

TEST_CASE("bytes are those that a save writes, and not what it links") {
  const test::TemporaryFolder run;
  KeptFiles kept;
  FullContents contents;
  contents.model = {{"still", at::ones({1000})}, {"trained", at::zeros({10})}};
  contents.recipe = "{}";
  const auto share_at = [&](std::int64_t step) {
    contents.state.step = step;
    return share_of(contents, 0, 1);
  };
  for (const std::int64_t step : {1, 2, 3}) {
    contents.model.at("trained").add_(1);
    write(core::system_disk(), run.path, share_at(step), nullptr, &kept);
  }
  CHECK(TensorFiles(share_at(4), &kept).bytes() == 0);  // its headers are linked too
  contents.model.at("trained").add_(1);
  const std::int64_t bytes = TensorFiles(share_at(4), &kept).bytes();
  CHECK(bytes <= 4 * 10);
  CHECK(bytes >= 0);
  CHECK(TensorFiles(share_at(4)).bytes() == 4 * 1010);
}
