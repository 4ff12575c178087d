#include "lib/format/weights/weight_write.h"

#include <doctest/doctest.h>

#include "lib/format/weights/weight_set.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("tensors are written as either kind of file and read back") {
  const test::TemporaryFolder folder;
  const std::vector<OwnedTensor> tensors{
      {.name = "a",
       .dtype = "U8",
       .shape = {3},
       .bytes = {std::byte{1}, std::byte{2}, std::byte{3}}},
      {.name = "b", .dtype = "I16", .shape = {1, 1}, .bytes = {std::byte{4}, std::byte{5}}}};
  for (const bool as_pt : {false, true}) {
    const std::string path = folder.file(as_pt ? "a.pt" : "a.safetensors");
    write_weights(core::system_disk(), path, as_pt, tensors);
    CHECK(is_pytorch_name(path) == as_pt);
    const WeightSet set(path, "", [](const std::string&) {});
    REQUIRE(set.tensors().size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const OwnedTensor found = read_tensor(set, set.tensors()[i]);
      CHECK(found.name == tensors[i].name);
      CHECK(found.dtype == tensors[i].dtype);
      CHECK(found.shape == tensors[i].shape);
      CHECK(found.bytes == tensors[i].bytes);
    }
  }
}

TEST_CASE("PyTorch's files are known by their ends") {
  for (const char* name : {"a.pt", "a.pth", "folder/a.bin"}) CHECK(is_pytorch_name(name));
  for (const char* name : {"a.safetensors", "a", "pt"}) CHECK(!is_pytorch_name(name));
}
