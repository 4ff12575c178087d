#include "lib/parallel/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lib/core/error.h"

namespace scaletrain::parallel {
namespace {

// Ratio of a bucket's size to the next one's: each all-reduce is done when the next one begins, as
// long as communication takes at most 80 % of backward.
constexpr double kGrowth = 1.25;

// Removes tensors of one dtype from the end of the buckets from `first` on, at most `most` bytes of
// them; takes one more tensor if less than a quarter of `most` would be reached.
std::vector<std::int64_t> take_last(BucketLayout& layout, std::size_t first,
                                    const std::vector<at::Tensor>& parameters, double most) {
  const auto tensor = [&](std::int64_t number) -> const at::Tensor& {
    return parameters[static_cast<std::size_t>(number)];
  };
  std::vector<std::int64_t> taken;
  double bytes = 0;
  while (layout.size() > first) {
    const std::int64_t next = layout.back().back();
    const double with_next = bytes + static_cast<double>(tensor(next).nbytes());
    if (!taken.empty() && tensor(next).scalar_type() != tensor(taken[0]).scalar_type()) break;
    if (with_next > most && bytes >= most / 4) break;
    bytes = with_next;
    taken.push_back(next);
    layout.back().pop_back();
    if (layout.back().empty()) layout.pop_back();
  }
  std::ranges::reverse(taken);
  return taken;
}

// Divides all but the first bucket anew, from the end, so that the last all-reduce is small.
void divide_last(BucketLayout& layout, const std::vector<at::Tensor>& parameters) {
  const std::size_t first = layout.size() > 1 ? 1 : 0;
  BucketLayout last;
  double most = kLastBucketBytes;
  for (; most < kBucketBytes && layout.size() > first; most *= kGrowth) {
    last.push_back(take_last(layout, first, parameters, most));
  }
  layout.insert(layout.end(), last.rbegin(), last.rend());
  // With several dtypes: a bucket waits for the buckets before it.
  std::ranges::sort(layout, std::greater<>(), [](const auto& bucket) { return bucket.back(); });
}

}  // namespace

BucketLayout make_layout(const std::vector<at::Tensor>& parameters) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  std::vector<std::int64_t> numbers(parameters.size());
  std::iota(numbers.rbegin(), numbers.rend(), 0);
  if (count == 0) return {};
  // compute_bucket_assignment_by_size keeps the order and returns the numbers that it is given.
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
