#include "lib/format/weights/weight_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "lib/format/safetensors/safetensors_header.h"
#include "lib/format/weights/element_values.h"

namespace scaletrain::format {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::int64_t kElementsAtOnce = 1 << 18;

// Some elements of a tensor, as bytes and as values.
struct Elements {
  std::vector<std::byte> bytes;
  std::vector<double> values;

  void read(const WeightSet& set, const WeightTensor& tensor, std::int64_t begin,
            std::int64_t count) {
    const std::int64_t element_bytes = dtype_bytes(tensor.dtype);
    bytes.resize(static_cast<std::size_t>(count * element_bytes));
    values.resize(static_cast<std::size_t>(count));
    set.read(tensor, bytes, begin * element_bytes);
    if (has_values(tensor.dtype)) read_values(tensor.dtype, bytes, values);
  }
};

struct Sums {
  double difference = 0, first = 0;  // sums of squares
};

void compare_values(const Elements& first, const Elements& second, TensorDiff& diff, Sums& sums) {
  for (std::size_t i = 0; i < first.values.size(); ++i) {
    const double a = first.values[i], b = second.values[i];
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
    const double distance = is_same ? 0 : std::abs(a - b);
    diff.differing += is_same ? 0 : 1;
    diff.largest = std::max(diff.largest, std::isnan(distance) ? kInfinite : distance);
    const double squared = distance * distance;
    if (std::isnan(squared)) {
      sums.difference = kInfinite;
    } else {
      sums.difference += squared;
    }
    sums.first += std::isfinite(a) ? a * a : 0;
  }
}

void compare_bytes(const Elements& first, const Elements& second, TensorDiff& diff) {
  const std::size_t step = first.bytes.size() / first.values.size();
  for (std::size_t at = 0; at < first.bytes.size(); at += step) {
    const bool is_same = std::memcmp(first.bytes.data() + at, second.bytes.data() + at, step) == 0;
    diff.differing += is_same ? 0 : 1;
  }
  if (diff.differing > 0) diff.largest = diff.relative = kInfinite;
}

void compare(const WeightSet& first, const WeightTensor& a, const WeightSet& second,
             const WeightTensor& b, TensorDiff& diff) {
  diff.elements = a.bytes / dtype_bytes(a.dtype);
  const bool by_values = has_values(a.dtype) && has_values(b.dtype);
  if (!by_values && a.dtype != b.dtype) {  // values cannot be compared
    diff.differing = diff.elements;
    diff.largest = diff.relative = kInfinite;
    diff.difference = WeightDifference::kValues;
    return;
  }
  Elements ours, theirs;
  Sums sums;
  for (std::int64_t begin = 0; begin < diff.elements; begin += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, diff.elements - begin);
    ours.read(first, a, begin, count);
    theirs.read(second, b, begin, count);
    if (by_values) {
      compare_values(ours, theirs, diff, sums);
    } else {
      compare_bytes(ours, theirs, diff);
    }
  }
  if (sums.difference > 0) diff.relative = std::sqrt(sums.difference) / std::sqrt(sums.first);
  if (diff.differing > 0) diff.difference = WeightDifference::kValues;
}

}  // namespace

std::vector<TensorDiff> diff_weights(const WeightSet& first, const WeightSet& second) {
  std::vector<std::string> names;
  names.reserve(first.tensors().size() + second.tensors().size());
  for (const WeightTensor& tensor : first.tensors()) names.push_back(tensor.name);
  for (const WeightTensor& tensor : second.tensors()) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<TensorDiff> diffs;
  diffs.reserve(names.size());
  for (const std::string& name : names) {
    TensorDiff& diff = diffs.emplace_back();
    diff.name = name;
    const WeightTensor* const a = first.find(name);
    const WeightTensor* const b = second.find(name);
    diff.dtypes = {a == nullptr ? "" : a->dtype, b == nullptr ? "" : b->dtype};
    if (a != nullptr) diff.shapes[0] = a->shape;
    if (b != nullptr) diff.shapes[1] = b->shape;
    if (a == nullptr || b == nullptr) {
      diff.difference =
          a == nullptr ? WeightDifference::kOnlyInSecond : WeightDifference::kOnlyInFirst;
    } else if (a->shape != b->shape) {
      diff.difference = WeightDifference::kShape;
    } else {
      compare(first, *a, second, *b, diff);
    }
  }
  return diffs;
}

}  // namespace scaletrain::format
