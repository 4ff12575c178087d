#include "lib/units/tensor_shard.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"

namespace scaletrain::units {
namespace {

constexpr std::int64_t kMostRanksNamed = 1024;

// Range along the sharded dimension.
struct Range {
  std::int64_t begin = 0, size = 0;
};

// Divides evenly; the sizes of vocabulary shards may differ by one.
Range range_of(std::int64_t size, const TensorPlace& place) {
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

// Returns the slices in the order of the local tensor's elements: one for each range, or if several
// ranges lie in each row one for each row and range.
std::vector<format::Piece> slices_of(const std::vector<std::int64_t>& shape, std::size_t dimension,
                                     const std::vector<Range>& ranges) {
  const auto box = [&](const Range& range, std::int64_t row, std::int64_t rows) {
    std::vector<std::int64_t> begin(shape.size(), 0), size = shape;
    begin[0] = row;
    size[0] = rows;
    begin[dimension] = range.begin;
    size[dimension] = range.size;
    const std::int64_t count = format::element_count(size);
    return format::Piece{
        .begin = std::move(begin), .size = std::move(size), .first = 0, .last = count};
  };
  std::vector<format::Piece> result;
  if (dimension == 0) {
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

}  // namespace

const TensorRule* find_rule(std::span<const TensorRule> plan, const std::string& tensor) {
  const auto found = std::find_if(plan.begin(), plan.end(), [&](const TensorRule& rule) {
    const bool is_layers = rule.style == TensorStyle::kEntry || rule.style == TensorStyle::kHead;
    return !is_layers && core::matches(rule.pattern, tensor);
  });
  return found == plan.end() ? nullptr : &*found;
}

Shard shard_by(const TensorRule& rule, const std::string& name, std::vector<std::int64_t> shape,
               const TensorPlace& place) {
  const std::int64_t size = shape.at(static_cast<std::size_t>(rule.dimension));
  std::vector<Range> ranges;
  if (rule.style == TensorStyle::kVocabulary) {
    if (size < place.ranks) refuse(name, size, rule, place.ranks);
    ranges.push_back(range_of(size, place));
  } else {
    const std::int64_t of_each = size / rule.parts, things = of_each / rule.together;
    if (things % place.ranks != 0) refuse(name, things, rule, place.ranks);
    for (int i = 0; i < rule.parts; ++i) {
      Range range = range_of(of_each, place);
      range.begin += i * of_each;
      ranges.push_back(range);
    }
  }
  Shard shard{.shape = std::move(shape)};
  shard.slices = slices_of(shard.shape, static_cast<std::size_t>(rule.dimension), ranges);
  return shard;
}

std::vector<std::int64_t> local_shape(const Shard& shard, int dimension) {
  std::vector<std::int64_t> shape = shard.shape;
  std::int64_t& size = shape.at(static_cast<std::size_t>(dimension));
  size = shard.count() / (format::element_count(shape) / size);
  return shape;
}

at::Tensor slice_of(const at::Tensor& full, const Shard& shard, int dimension) {
  Shard slice = shard;
  slice.tensor = at::empty(local_shape(shard, dimension), at::TensorOptions(full.scalar_type()));
  copy_from_full(full.detach().contiguous(), slice);
  return slice.tensor;
}

}  // namespace scaletrain::units
