#include "lib/data/order/mixed_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/data/order/permutation.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMixBlock = 4096;
constexpr unsigned kShareBits = 32;

// floor(count * share / 2^32), without overflow for any count.
std::int64_t part_of(std::int64_t count, std::uint64_t share) {
  const auto all = static_cast<std::uint64_t>(count);
  const std::uint64_t high = all >> kShareBits, low = all & 0xffffffff;
  return static_cast<std::int64_t>(high * share + (low * share >> kShareBits));
}

}  // namespace

MixedOrder::MixedOrder(std::uint64_t seed, std::vector<Source> sources, std::int64_t size)
    : seed_(seed), sources_(std::move(sources)), size_(size) {
  double rest = 0;
  for (const Source& source : sources_) rest += source.weight;
  for (const Source& source : sources_) {
    const double share = std::min(source.weight / rest, 1.0);
    shares_.push_back(static_cast<std::uint64_t>(std::llround(std::ldexp(share, kShareBits))));
    rest -= source.weight;
  }
}

SamplePlace MixedOrder::at(std::int64_t epoch, std::int64_t position) const {
  std::int64_t turn = position;
  if (sources_.size() > 1) {
    const std::int64_t block = position / kMixBlock, begin = block * kMixBlock;
    const Permutation turns(permutation_key(seed_, core::DrawPurpose::kSourceOrder, epoch, block),
                            std::min(kMixBlock, size_ - begin));
    turn = begin + turns(position - begin);
  }
  // Turn number `number` of all sources from `i` on; it is the source's own where its part of the
  // turns grows with it.
  std::int64_t number = epoch * size_ + turn;
  std::size_t i = 0;
  for (; i + 1 < sources_.size(); ++i) {
    const std::int64_t own = part_of(number, shares_[i]);
    if (part_of(number + 1, shares_[i]) > own) {
      number = own;
      break;
    }
    number -= own;
  }
  const Source& source = sources_[i];
  SamplePlace place =
      source.order->at(number / source.order->size(), number % source.order->size());
  place.shard += source.first_shard;
  return place;
}

}  // namespace scaletrain::data
