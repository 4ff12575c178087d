#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/checkpoint/checkpoint.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/format/cut_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

TEST_CASE("what is saved in pieces is loaded as what is whole, bit for bit") {
  const test::TemporaryFolder run, other;
  const auto contents_of = [](std::int64_t step) {
    const auto value = static_cast<double>(step);
    FullContents contents;
    contents.model = {{"bf16", at::full({3}, value, at::kBFloat16)},
                      {"fc.weight", at::arange(6, at::kFloat).reshape({3, 2}).add(value).t()},
                      {"none", at::empty({0, 4}, at::kFloat)},
                      {"norm.num_batches_tracked", at::full({}, step, at::kLong)}};
    contents.optimizer = {{"exp_avg/fc.weight", at::full({2, 3}, value + 1, at::kFloat)}};
    contents.state.step = step;
    contents.recipe = "{}";
    return contents;
  };
  const auto check_same = [](const Tensors& a, const Tensors& b) {
    for (const auto& [name, tensor] : a) CHECK((at::equal(tensor, b.at(name))));
  };
  const FullContents saved = contents_of(7);
  const fs::path whole = save(core::system_disk(), run.path, saved, {.last = 1});
  const fs::path cut =
      format::publish_checkpoint(core::system_disk(), other.path, {.program = "test", .step = 7}, 1,
                                 [&](const fs::path& folder) {
                                   format::FolderFiles files = format::read_manifest(whole).files;
                                   for (const auto& [name, entry] : files.files)
                                     fs::copy(whole / name, folder / name);
                                   test::cut_file(folder, "model.safetensors", files);
                                   test::cut_file(folder, "optimizer.safetensors", files);
                                   return files;
                                 });
  CHECK(!fs::exists(cut / "model.safetensors"));
  CHECK(format::model_digest(cut) == format::model_digest(whole));
  FullContents loaded = contents_of(99);
  load(cut, loaded);
  check_same(saved.model, loaded.model);
  check_same(saved.optimizer, loaded.optimizer);
  auto model = contents_of(98).model;
  load_weights_of(cut, model);
  check_same(saved.model, model);
}
