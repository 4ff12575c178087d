#include "lib/parallel/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::parallel {
namespace {

// Halves the last two buckets together until what comes last is small: the exchange of each is done
// when the next one begins, and little begins when backward ends.
void divide_last(BucketLayout& layout, const std::vector<at::Tensor>& parameters) {
  const auto bytes_of = [&](std::int64_t number) {
    return parameters[static_cast<std::size_t>(number)].nbytes();
  };
  if (layout.size() > 2) {  // the first one stays small
    const std::vector<std::int64_t> last = std::exchange(layout.back(), {});
    layout.pop_back();
    layout.back().insert(layout.back().end(), last.begin(), last.end());
  }
  for (;;) {
    const std::vector<std::int64_t> last = layout.back();
    const std::size_t all = std::accumulate(
        last.begin(), last.end(), std::size_t{0},
        [&](std::size_t sum, std::int64_t number) { return sum + bytes_of(number); });
    const std::size_t most = std::max(all / 2, kLastBucketBytes);
    std::size_t bytes = 0, begin = last.size();
    while (begin > 0 && bytes + bytes_of(last[begin - 1]) <= most) bytes += bytes_of(last[--begin]);
    if (begin == 0 || begin == last.size()) return;
    const auto middle = last.begin() + static_cast<std::ptrdiff_t>(begin);
    layout.back().assign(last.begin(), middle);
    layout.emplace_back(middle, last.end());
  }
}

}  // namespace

BucketLayout make_layout(const std::vector<at::Tensor>& parameters) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  std::vector<std::int64_t> numbers(parameters.size());
  std::iota(numbers.rbegin(), numbers.rend(), 0);
  if (count == 0) return {};
  // Given the numbers, the function keeps the order and returns them.
  const auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(reversed, {kFirstBucketBytes, kBucketBytes},
                                              std::vector<bool>(parameters.size(), false), numbers);
  BucketLayout layout;
  for (const auto& bucket : buckets) layout.emplace_back(bucket.begin(), bucket.end());
  divide_last(layout, parameters);
  return layout;
}

void check_layout(const BucketLayout& layout, std::size_t parameters) {
  std::vector<int> seen(parameters, 0);
  std::size_t wrong = 0;
  for (const auto& bucket : layout) {
    if (bucket.empty()) ++wrong;
    for (const std::int64_t number : bucket) {
      const bool known = number >= 0 && static_cast<std::size_t>(number) < parameters;
      if (!known || ++seen[static_cast<std::size_t>(number)] > 1) ++wrong;
    }
  }
  for (const int times : seen) wrong += times == 0 ? 1 : 0;
  if (wrong == 0) return;
  throw core::CheckpointError(
      "bucket layout",
      fmt::format("does not name each of the model's {} parameters once ({} mistakes)", parameters,
                  wrong),
      "the checkpoint belongs to another model; resume with its own recipe");
}

}  // namespace scaletrain::parallel
