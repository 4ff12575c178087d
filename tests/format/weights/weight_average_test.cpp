#include "lib/format/weights/weight_average.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

WeightSet set_of(const test::TemporaryFolder& folder, const std::string& file,
                 std::vector<TensorBytes> tensors) {
  write_safetensors(core::system_disk(), folder.file(file), std::move(tensors), {});
  return {folder.file(file), "", [](const std::string&) {}};
}

template <class Value, std::size_t kCount>
TensorBytes tensor_of(const std::string& name, const std::string& dtype,
                      const std::array<Value, kCount>& values) {
  return {name, dtype, {static_cast<std::int64_t>(kCount)}, std::as_bytes(std::span(values))};
}

}  // namespace

TEST_CASE("floating tensors become their mean, others stay the first's") {
  const test::TemporaryFolder folder;
  const std::array<float, 2> a{1, 2}, b{2, 4}, c{6, 3};
  const std::array<std::int64_t, 1> first{7}, other{9};
  const std::array<std::uint16_t, 2> half_a{0x3c00, 0x3c00}, half_b{0x4000, 0x3c01};  // 1 1, 2 1+
  const WeightSet one = set_of(
      folder, "a",
      {tensor_of("w", "F32", a), tensor_of("n", "I64", first), tensor_of("h", "F16", half_a)});
  const WeightSet two = set_of(
      folder, "b",
      {tensor_of("w", "F32", b), tensor_of("n", "I64", other), tensor_of("h", "F16", half_b)});
  const WeightSet three = set_of(
      folder, "c",
      {tensor_of("w", "F32", c), tensor_of("n", "I64", other), tensor_of("h", "F16", half_b)});
  const std::vector<OwnedTensor> mean = average_weights({&one, &two, &three});
  REQUIRE(mean.size() == 3);
  CHECK(mean[0].name == "h");
  CHECK(mean[0].dtype == "F16");
  std::array<std::uint16_t, 2> halves{};
  std::memcpy(halves.data(), mean[0].bytes.data(), sizeof halves);
  CHECK(halves[0] == 0x3eab);  // 5/3 = 1.1010101011 (binary) after rounding
  CHECK(halves[1] == 0x3c01);  // 1 + 2/3 of the last bit
  CHECK(mean[1].name == "n");
  CHECK(std::memcmp(mean[1].bytes.data(), first.data(), sizeof first) == 0);
  std::array<float, 2> floats{};
  std::memcpy(floats.data(), mean[2].bytes.data(), sizeof floats);
  CHECK(floats == std::array<float, 2>{3, 3});  // (1 + 2 + 6) / 3, (2 + 4 + 3) / 3
  CHECK(mean[2].shape == std::vector<std::int64_t>{2});
}

TEST_CASE("sets of other tensors are refused") {
  const test::TemporaryFolder folder;
  const std::array<float, 2> two{};
  const std::array<float, 1> one{};
  const WeightSet first = set_of(folder, "a", {tensor_of("w", "F32", two)});
  const auto problem = [&](std::vector<TensorBytes> tensors) -> std::string {
    const WeightSet other = set_of(folder, "b", std::move(tensors));
    try {
      average_weights({&first, &other});
    } catch (const core::CheckpointError& error) {
      CHECK(error.place() == folder.file("b"));
      return error.found();
    }
    return "nothing";
  };
  CHECK(problem({tensor_of("w", "F32", two)}) == "nothing");
  CHECK(problem({}) == "has no tensor \"w\"");
  CHECK(problem({tensor_of("w", "F32", one)}) ==
        "has \"w\" as F32 [1], where the first has F32 [2]");
  CHECK(problem({tensor_of("w", "F32", two), tensor_of("x", "F32", one)}) ==
        "has the tensor \"x\", which the first has not");
}
