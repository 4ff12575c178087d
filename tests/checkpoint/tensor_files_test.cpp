#include "lib/checkpoint/tensor_files.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/checkpoint/share.h"
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
  Contents contents;
  contents.model = {{"w", at::ones({4})}};
  CHECK(names_of_files(contents) == Names{"model.safetensors", "optimizer.safetensors"});
  contents.buffers = {{"b", at::ones({2, 2})}};
  contents.means["ema"] = {.tensors = contents.model, .buffers = contents.buffers};
  CHECK(names_of_files(contents) == Names{"buffers.safetensors", "ema.safetensors",
                                          "ema_buffers.safetensors", "model.safetensors",
                                          "optimizer.safetensors"});
  CHECK(TensorFiles(contents).bytes() == 4 * (4 + 4 + 4 + 4));
  CHECK(names_of_files(share_of(contents, 1, 2)) == Names{"ema-00001-of-00001.safetensors"});
  CHECK(TensorFiles(share_of(contents, 0, 2)).bytes() == 4 * (4 + 4 + 4 + 4));
}
