#include "lib/format/weights/weight_diff.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/format/weights/weights_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

struct Floats {
  std::string name;
  std::vector<float> values;
};

WeightSet written_set(const test::TemporaryFolder& folder, const std::string& file,
                      const std::vector<Floats>& tensors, const std::string& dtype = "F32") {
  std::vector<TensorBytes> described;
  for (const auto& tensor : tensors) {
    const auto bytes = std::as_bytes(std::span(tensor.values));
    const auto elements = static_cast<std::int64_t>(bytes.size()) / dtype_bytes(dtype);
    described.push_back({tensor.name, dtype, {elements}, bytes});
  }
  write_safetensors(core::system_disk(), folder.file(file), std::move(described), {});
  return {folder.file(file), "", [](const std::string&) {}};
}

}  // namespace

TEST_CASE("what differs is said by tensor, and how much") {
  const test::TemporaryFolder folder;
  const float nan = std::nanf("");
  std::vector<float> many(300'000, 1);
  const std::vector<Floats> ours{{"a", {1, 2, nan}}, {"b", {3, 4}},   {"c", {1}},
                                 {"d", {1, 2}},      {"n", {1, nan}}, {"z", many}};
  many.back() = 2;
  const std::vector<Floats> theirs{{"a", {1, 2, nan}}, {"b", {3, 1}},     {"d", {1}},
                                   {"e", {1}},         {"n", {nan, nan}}, {"z", many}};
  const std::vector<TensorDiff> diffs =
      diff_weights(written_set(folder, "a", ours), written_set(folder, "b", theirs));
  using Difference = WeightDifference;
  struct Expected {
    std::string name;
    Difference difference;
    std::int64_t elements, differing;
    double largest, relative;
  };
  const std::vector<Expected> expected{
      {"a", Difference::kNone, 3, 0, 0, 0},
      {"b", Difference::kValues, 2, 1, 3, 3.0 / 5},  // |(0, 3)| / |(3, 4)|
      {"c", Difference::kOnlyInFirst, 0, 0, 0, 0},
      {"d", Difference::kShape, 0, 0, 0, 0},
      {"e", Difference::kOnlyInSecond, 0, 0, 0, 0},
      {"n", Difference::kValues, 2, 1, kEndless, kEndless},
      {"z", Difference::kValues, 300'000, 1, 1, 1 / std::sqrt(300'000)}};
  REQUIRE(diffs.size() == expected.size());
  for (std::size_t i = 0; i < diffs.size(); ++i) {
    CHECK(diffs[i].name == expected[i].name);
    CHECK((diffs[i].difference == expected[i].difference));
    CHECK(diffs[i].elements == expected[i].elements);
    CHECK(diffs[i].differing == expected[i].differing);
    CHECK(diffs[i].largest == expected[i].largest);
    const bool is_near = diffs[i].relative == expected[i].relative ||
                         std::abs(diffs[i].relative - expected[i].relative) < 1e-12;
    CHECK(is_near);
  }
  CHECK(diffs[2].dtypes == std::array<std::string, 2>{"F32", ""});
  CHECK(diffs[3].shapes[0] == std::vector<std::int64_t>{2});
  CHECK(diffs[3].shapes[1] == std::vector<std::int64_t>{1});
}

TEST_CASE("types may differ where values can be compared") {
  const test::TemporaryFolder folder;
  const float two_bfloats = std::bit_cast<float>(0x40003f80U);  // 1 and 2
  const WeightSet small = written_set(folder, "a", {{"a", {two_bfloats}}}, "BF16");
  const WeightSet wide = written_set(folder, "b", {{"a", {1, 2.5F}}});
  const std::vector<TensorDiff> diffs = diff_weights(small, wide);
  CHECK(diffs[0].differing == 1);
  CHECK(diffs[0].largest == 0.5);
  CHECK(diffs[0].dtypes == std::array<std::string, 2>{"BF16", "F32"});
  // Without values: by bytes where the types agree, otherwise different.
  const WeightSet eight = written_set(folder, "c", {{"a", {two_bfloats}}}, "F8_E4M3");
  const WeightSet other = written_set(folder, "d", {{"a", {1}}}, "F8_E4M3");
  const WeightSet complex = written_set(folder, "e", {{"a", {1, 2, 3, 4, 5, 6, 7, 8}}}, "C64");
  CHECK((diff_weights(eight, eight)[0].difference == WeightDifference::kNone));
  CHECK(diff_weights(eight, other)[0].differing == 4);  // 80 3f 00 40 and 00 00 80 3f
  CHECK(diff_weights(eight, complex)[0].differing == 4);
}
