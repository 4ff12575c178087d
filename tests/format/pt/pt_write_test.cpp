#include "lib/format/pt/pt_write.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/format/pt/pt_file.h"
#include "lib/format/safetensors/safetensors_header.h"
#include "tests/format/pt/pt_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

struct Written {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

FileEntry write_all(const std::string& path, const std::vector<Written>& tensors) {
  PtWriter writer(core::system_disk(), path);
  for (const Written& tensor : tensors) {
    writer.add(tensor.name, tensor.dtype, tensor.shape, std::as_bytes(std::span(tensor.bytes)));
  }
  return writer.finish();
}

std::string write_problem(const std::vector<Written>& tensors) {
  const test::TemporaryFolder folder;
  try {
    write_all(folder.file("a.pt"), tensors);
  } catch (const core::InternalError& error) {
    CHECK(error.place() == "PtWriter::add");
    return error.found();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("what is written is read") {
  std::vector<Written> tensors{{"", "U8", {}, "x"},
                               {"many", "I16", {300, 1, 70'000, 0}, ""},
                               {"long", "U8", {70'000}, std::string(70'000, 'l')},
                               {"name é", "U8", {2, 3}, "abcdef"}};
  for (const char* const dtype :
       {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL", "C64", "U16", "U32",
        "U64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}) {
    const auto bytes = static_cast<std::size_t>(dtype_bytes(dtype));
    tensors.push_back({dtype, dtype, {3}, std::string(3 * bytes, 'v')});
  }
  const test::TemporaryFolder folder;
  const FileEntry entry = write_all(folder.file("a.pt"), tensors);
  const FileEntry found = hash_file(folder.file("a.pt"), entry.kind);
  CHECK(entry.bytes == found.bytes);
  CHECK(entry.sum == found.sum);
  const PtFile file(folder.file("a.pt"));
  REQUIRE(file.tensors().size() == tensors.size());
  std::sort(tensors.begin(), tensors.end(),
            [](const Written& a, const Written& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const PtTensor& tensor = file.tensors()[i];
    CHECK(tensor.name == tensors[i].name);
    CHECK(tensor.dtype == tensors[i].dtype);
    CHECK(tensor.shape == tensors[i].shape);
    std::string bytes(static_cast<std::size_t>(pt_tensor_bytes(tensor)), '\0');
    file.read(tensor, std::as_writable_bytes(std::span(bytes)));
    CHECK(bytes == tensors[i].bytes);
  }
  // Tensors begin at multiples of 64 bytes.
  CHECK(folder.read("a.pt").find("abcdef") % 64 == 0);
}

TEST_CASE("the pickle is that of docs/reference/formats/pt.md") {
  const test::TemporaryFolder folder;
  write_all(folder.file("a.pt"), {{"a", "U8", {2}, "\x01\x02"}});
  const std::string expected = test::pickle_of(
      "}(" + test::pickled_text("a") + test::pickled_global("torch._utils", "_rebuild_tensor_v2") +
      "((" + test::pickled_text("storage") + test::pickled_global("torch", "ByteStorage") +
      test::pickled_text("0") + test::pickled_text("cpu") + "K\x02tQ" + std::string("K\0", 2) +
      "(K\x02t(K\x01t\x89" + test::pickled_global("collections", "OrderedDict") + ")RtRu");
  CHECK(folder.read("a.pt").find(expected) != std::string::npos);
}

TEST_CASE("a tensor that cannot be is the caller's mistake") {
  CHECK(write_problem({}) == "nothing");
  CHECK(write_problem({{"a", "F32", {2}, "1234"}}) ==
        "tensor \"a\" of dtype F32 and shape [2] comes with 4 bytes");
  CHECK(write_problem({{"a", "F4", {0}, ""}}) ==
        "tensor \"a\" of dtype F4 and shape [0] comes with 0 bytes");
  CHECK(write_problem({{"\xff", "U8", {1}, "1"}}) ==
        "tensor \"\xff\" of dtype U8 and shape [1] comes with 1 byte");
  CHECK(write_problem({{"a", "U8", {1}, "1"}, {"a", "U8", {1}, "1"}}) ==
        "tensor \"a\" of dtype U8 and shape [1] comes with 1 byte");
}
