#include "lib/data/order/source_turns.h"

#include <algorithm>
#include <cmath>

namespace scaletrain::data {
namespace {

constexpr unsigned kShareBits = 32;

// floor((count * share + phase) / 2^32), without overflow for any count.
std::int64_t part_of(std::int64_t count, std::uint64_t share, std::uint64_t phase) {
  const auto all = static_cast<std::uint64_t>(count);
  const std::uint64_t high = all >> kShareBits, low = all & 0xffffffff;
  return static_cast<std::int64_t>(high * share + ((low * share + phase) >> kShareBits));
}

}  // namespace

SourceTurns::SourceTurns(const std::vector<double>& weights) {
  double rest = 0;
  for (const double weight : weights) rest += weight;
  for (const double weight : weights) {
    const double share = std::min(weight / rest, 1.0);
    shares_.push_back(static_cast<std::uint64_t>(std::llround(std::ldexp(share, kShareBits))));
    rest -= weight;
  }
}

SourceTurns::Turn SourceTurns::at(std::int64_t number, std::uint64_t phase) const {
  // Turn `number` is divided among the sources from `i` on. It belongs to source i if its share of
  // the turns grows with this turn.
  std::size_t i = 0;
  for (; i + 1 < shares_.size(); ++i) {
    const std::int64_t own = part_of(number, shares_[i], phase);
    if (part_of(number + 1, shares_[i], phase) > own) return {i, own};
    number -= own;
  }
  return {i, number};
}

std::vector<std::int64_t> SourceTurns::before(std::int64_t turns, std::uint64_t phase) const {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i + 1 < shares_.size(); ++i) {
    result.push_back(part_of(turns, shares_[i], phase));
    turns -= result.back();
  }
  result.push_back(turns);
  return result;
}

}  // namespace scaletrain::data
