#include "lib/units/tensor_part.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"

namespace scaletrain::units {
namespace {

constexpr std::int64_t kMostRanksNamed = 1024;

// Even split; the sizes of vocabulary shards may differ by one.
TensorPart::Range range_of(std::int64_t size, const TensorPlace& place) {
  const std::int64_t rank = place.rank, each = size / place.ranks, more = size % place.ranks;
  return {.begin = rank * each + std::min(rank, more), .size = each + (rank < more ? 1 : 0)};
}

// Returns the numbers of ranks, from 2 on, that divide `things`.
std::vector<std::int64_t> divisors(std::int64_t things) {
  std::vector<std::int64_t> result;
  for (std::int64_t ranks = 2; ranks <= std::min(things, kMostRanksNamed); ++ranks) {
    if (things % ranks == 0) result.push_back(ranks);
  }
  return result;
}

[[noreturn]] void refuse(const std::string& name, std::int64_t things, const TensorRule& rule,
                         int ranks) {
  const std::vector<std::int64_t> fitting = divisors(things);
  throw core::RecipeError("/parallel/tensor",
                          fmt::format("{} ranks cannot share the {} {} of {}", ranks, things,
                                      rule.together > 1 ? "heads" : "features", name),
                          fitting.empty() ? "leave it out"
                                          : fmt::format("use a number that divides them: {}",
                                                        fmt::join(fitting, ", ")));
}

}  // namespace

std::vector<std::int64_t> TensorPart::part_shape() const {
  std::vector<std::int64_t> result = shape;
  std::int64_t& size = result.at(static_cast<std::size_t>(dimension));
  size = 0;
  for (const Range& range : ranges) size += range.size;
  return result;
}

at::Tensor TensorPart::of(const at::Tensor& whole) const {
  std::vector<at::Tensor> boxes;
  boxes.reserve(ranges.size());
  for (const Range& range : ranges) {
    boxes.push_back(whole.narrow(dimension, range.begin, range.size));
  }
  return at::cat(boxes, dimension);
}

void TensorPart::put_into(const at::Tensor& whole, const at::Tensor& part) const {
  std::int64_t begin = 0;
  for (const Range& range : ranges) {
    whole.narrow(dimension, range.begin, range.size)
        .copy_(part.narrow(dimension, begin, range.size));
    begin += range.size;
  }
}

std::vector<format::Piece> TensorPart::pieces() const {
  const auto cut = static_cast<std::size_t>(dimension);
  const auto box = [&](const Range& range, std::int64_t row, std::int64_t rows) {
    std::vector<std::int64_t> begin(shape.size(), 0), size = shape;
    begin[0] = row;
    size[0] = rows;
    begin[cut] = range.begin;
    size[cut] = range.size;
    const std::int64_t count = format::element_count(size);
    return format::Piece{
        .begin = std::move(begin), .size = std::move(size), .first = 0, .last = count};
  };
  std::vector<format::Piece> result;
  if (cut == 0) {
    for (const Range& range : ranges) result.push_back(box(range, range.begin, range.size));
  } else if (ranges.size() == 1) {
    result.push_back(box(ranges.front(), 0, shape[0]));
  } else {
    for (std::int64_t row = 0; row < shape[0]; ++row) {
      for (const Range& range : ranges) result.push_back(box(range, row, 1));
    }
  }
  return result;
}

const TensorRule* find_rule(std::span<const TensorRule> plan, const std::string& tensor) {
  const auto found = std::find_if(plan.begin(), plan.end(), [&](const TensorRule& rule) {
    const bool is_layers = rule.style == TensorStyle::kEntry || rule.style == TensorStyle::kHead;
    return !is_layers && core::matches(rule.pattern, tensor);
  });
  return found == plan.end() ? nullptr : &*found;
}

TensorPart part_of(const TensorRule& rule, const std::string& name, std::vector<std::int64_t> shape,
                   const TensorPlace& place) {
  const std::int64_t size = shape.at(static_cast<std::size_t>(rule.dimension));
  TensorPart part{.shape = std::move(shape), .dimension = rule.dimension, .ranges = {}};
  if (rule.style == TensorStyle::kVocabulary) {
    if (size < place.ranks) refuse(name, size, rule, place.ranks);
    part.ranges.push_back(range_of(size, place));
    return part;
  }
  const std::int64_t of_each = size / rule.parts, things = of_each / rule.together;
  if (things % place.ranks != 0) refuse(name, things, rule, place.ranks);
  for (int i = 0; i < rule.parts; ++i) {
    TensorPart::Range range = range_of(of_each, place);
    range.begin += i * of_each;
    part.ranges.push_back(range);
  }
  return part;
}

}  // namespace scaletrain::units
