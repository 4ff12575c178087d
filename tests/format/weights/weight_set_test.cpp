#include "lib/format/weights/weight_set.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "lib/core/error.h"
#include "tests/format/weights/weights_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

void ignore_report(const std::string& /*damage*/) {}

// "NAME=BYTES ..." of all tensors at a path.
std::string values_at(const std::filesystem::path& path) {
  try {
    const WeightSet set(path, "", ignore_report);
    std::string text;
    for (const WeightTensor& tensor : set.tensors()) {
      std::string bytes(static_cast<std::size_t>(tensor.bytes), '\0');
      set.read(tensor, std::as_writable_bytes(std::span(bytes)));
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", tensor.name, bytes);
      CHECK(set.find(tensor.name) == &tensor);
    }
    CHECK(set.find("no such tensor") == nullptr);
    return text;
  } catch (const core::CheckpointError& error) {
    return error.found();
  }
}

}  // namespace

TEST_CASE("tensors of many files are one set") {
  for (const std::string end : {"safetensors", "bin"}) {
    const test::TemporaryFolder folder;
    const bool is_pt = end == "bin";
    const std::string first = "model-00001-of-00002." + end, second = "model-00002-of-00002." + end;
    const auto write = [&](const std::string& name, const test::NamedText& tensors) {
      is_pt ? test::write_pt(folder, name, tensors) : test::write_weights(folder, name, tensors);
    };
    const auto write_index = [&](const std::string& map) {
      folder.write(is_pt ? "pytorch_model.bin.index.json" : "model.safetensors.index.json",
                   fmt::format(R"({{"weight_map": {{{}}}}})", map));
    };
    write(first, {{"b", "first b"}, {"extra", "e"}});
    write(second, {{"a", "second a"}});
    const std::string both = fmt::format(R"("b": "{}", "a": "{}")", first, second);
    write_index(both);
    CHECK(values_at(folder.path) == "a=second a b=first b extra=e");
    write_index(both + fmt::format(R"(, "c": "{}")", first));
    CHECK(values_at(folder.path) ==
          fmt::format("says that \"c\" is in \"{}\", where it is not", first));
    write_index(both + fmt::format(R"(, "extra": "{}")", second));
    CHECK(values_at(folder.path) ==
          fmt::format("says that \"extra\" is in \"{}\", where \"{}\" has it", second, first));
    write_index(both);
    write(second, {{"a", "second a"}, {"b", "second b"}});
    CHECK(values_at(folder.path) ==
          fmt::format("has the tensor \"b\" in {} and in {}", first, second));
    std::filesystem::remove(folder.file(second));
    CHECK(values_at(folder.path) == fmt::format("names the file \"{}\", which is missing", second));
  }
}

TEST_CASE("one file is a set") {
  const test::TemporaryFolder folder;
  CHECK(values_at(test::write_weights(folder, "a", {{"x", "1"}})) == "x=1");
  CHECK(values_at(test::write_pt(folder, "b", {{"x", "2"}})) == "x=2");
  folder.write("c", "not weights");
  CHECK(values_at(folder.path / "c").starts_with("says that its header has "));
}

TEST_CASE("whole numbers with their scales are one tensor of fp32, in one file or in two") {
  const test::TemporaryFolder folder;
  const std::array<std::int8_t, 4> values{1, 2, 3, 4};
  const std::array<float, 2> scales{0.5F, 10};
  const auto read = [&](const std::filesystem::path& path) {
    const WeightSet set(path, "", ignore_report);
    const WeightTensor* const tensor = set.find("a.weight");
    REQUIRE(tensor != nullptr);
    CHECK(tensor->dtype == "F32");
    CHECK(tensor->bytes == 16);
    CHECK(set.find("a.weight_scale") == nullptr);
    std::array<float, 4> found{};
    set.read(*tensor, std::as_writable_bytes(std::span(found)));
    CHECK(found == std::array<float, 4>{0.5F, 1, 30, 40});
    std::array<float, 2> end{};
    set.read(*tensor, std::as_writable_bytes(std::span(end)), 8);
    CHECK(end == std::array<float, 2>{30, 40});
    return set.tensors().size();
  };
  const TensorBytes whole{"a.weight", "I8", {2, 2}, std::as_bytes(std::span(values))};
  const TensorBytes scale{"a.weight_scale", "F32", {2, 1}, std::as_bytes(std::span(scales))};
  // A scale of nothing stays what it is.
  const TensorBytes other{"b.weight_scale", "F32", {2, 1}, std::as_bytes(std::span(scales))};
  write_safetensors(core::system_disk(), folder.file("one.safetensors"), {whole, scale, other}, {});
  CHECK(read(folder.file("one.safetensors")) == 2);
  write_safetensors(core::system_disk(), folder.file("model-1.safetensors"), {whole}, {});
  write_safetensors(core::system_disk(), folder.file("model-2.safetensors"), {scale}, {});
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"a.weight": "model-1.safetensors",
                                  "a.weight_scale": "model-2.safetensors"}})");
  CHECK(read(folder.file("model.safetensors.index.json")) == 1);
}
