#include "lib/data/order/streamed_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/data/order/permutation.h"

namespace scaletrain::data {

StreamedLane::StreamedLane(const LaneOptions& options, std::int64_t lane, SizeOf size_of)
    : options_(options), lane_(lane), size_of_(std::move(size_of)) {
  if (options.shards >= options.lanes) {
    for (std::int64_t s = lane; s < options.shards; s += options.lanes) shards_.push_back(s);
  } else {
    const std::int64_t shard = lane % options.shards;
    shards_.push_back(shard);
    part_ = lane / options.shards;
    parts_ = (options.lanes - shard - 1) / options.shards + 1;
  }
}

SamplePlace StreamedLane::at(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const Found found = find(number);
  const Permutation order(permutation_key(options_.seed, core::DrawPurpose::kSampleOrder,
                                          found.pass->number, (lane_ << 32) + found.group),
                          found.end - found.begin);
  return place(*found.pass, found.begin + order(found.offset - found.begin));
}

SamplePlace StreamedLane::replacement(std::int64_t number, core::Philox& draws) {
  const std::lock_guard lock(mutex_);
  const Found found = find(number);
  const auto drawn = draws.below(static_cast<std::uint64_t>(found.end - found.begin));
  return place(*found.pass, found.begin + static_cast<std::int64_t>(drawn));
}

std::vector<std::int64_t> StreamedLane::upcoming(std::int64_t number) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};
  const Pass& first = pass(0);
  const bool known = first.whole() && first.end() > 0;
  if (!known && number > first.end()) return {};
  const Pass& current = known ? *find(number).pass : first;
  const std::int64_t offset = known ? number % first.end() : number;
  const auto size = static_cast<std::size_t>(group_size());
  const auto shard = static_cast<std::size_t>(
      std::upper_bound(current.ends.begin(), current.ends.end(), offset) - current.ends.begin());
  std::vector<std::int64_t> result;
  const std::size_t begin = shard / size * size;
  const auto add = [&](const std::vector<std::int64_t>& shards, std::size_t from) {
    for (std::size_t i = from; i < shards.size() && result.size() < 2 * size; ++i) {
      result.push_back(shards[i]);
    }
  };
  add(current.shards, begin);
  add(make_pass(current.number + 1).shards, 0);
  return result;
}

StreamedLane::Found StreamedLane::find(std::int64_t number) {
  Pass& first = pass(0);
  while (!first.whole() && first.end() <= number) learn_group(first);
  if (number < first.end()) return in_pass(first, number);
  const std::int64_t total = first.end();
  if (total == 0) {
    throw core::DataError(
        options_.place,
        fmt::format("lane {} of {} has no sample: {}", lane_, options_.lanes,
                    core::counted(static_cast<std::int64_t>(options_.shards), "shard")),
        "use fewer lanes");
  }
  Pass& later = pass(number / total);
  while (!later.whole()) learn_group(later);
  return in_pass(later, number % total);
}

StreamedLane::Found StreamedLane::in_pass(const Pass& pass, std::int64_t offset) const {
  const auto shard =
      std::upper_bound(pass.ends.begin(), pass.ends.end(), offset) - pass.ends.begin();
  const std::int64_t size = group_size(), group = shard / size;
  const auto last = std::min(static_cast<std::size_t>((group + 1) * size), pass.ends.size());
  const auto before = static_cast<std::size_t>(group * size);
  return {&pass, offset, group, before == 0 ? 0 : pass.ends[before - 1], pass.ends[last - 1]};
}

SamplePlace StreamedLane::place(const Pass& pass, std::int64_t offset) const {
  const auto i = static_cast<std::size_t>(
      std::upper_bound(pass.ends.begin(), pass.ends.end(), offset) - pass.ends.begin());
  const std::int64_t sample = offset - (i == 0 ? 0 : pass.ends[i - 1]);
  return {pass.shards[i], sample * parts_ + part_};
}

std::int64_t StreamedLane::group_size() const {
  return std::max<std::int64_t>(options_.shuffle_shards, 1);
}

void StreamedLane::learn_group(Pass& pass) const {
  const std::size_t known = pass.ends.size();
  const auto last = std::min(known + static_cast<std::size_t>(group_size()), pass.shards.size());
  std::vector<std::int64_t> ends = pass.ends;  // a copy: an error must leave the pass unchanged
  for (std::size_t i = known; i < last; ++i) {
    const std::int64_t samples = size_of_(pass.shards[i]);
    const std::int64_t own = std::max<std::int64_t>(samples - part_ + parts_ - 1, 0) / parts_;
    ends.push_back((ends.empty() ? 0 : ends.back()) + own);
  }
  pass.ends = std::move(ends);
}

StreamedLane::Pass& StreamedLane::pass(std::int64_t number) {
  if (number == 0) {
    if (first_.shards.empty()) first_ = make_pass(0);
    return first_;
  }
  std::optional<Pass>& kept = recent_[static_cast<std::size_t>(number % 2)];
  if (!kept || kept->number != number) kept = make_pass(number);
  return *kept;
}

StreamedLane::Pass StreamedLane::make_pass(std::int64_t number) const {
  const auto count = static_cast<std::int64_t>(shards_.size());
  const Permutation order(
      permutation_key(options_.seed, core::DrawPurpose::kLaneOrder, number, lane_), count);
  Pass pass;
  pass.number = number;
  for (std::int64_t i = 0; i < count; ++i) {
    pass.shards.push_back(shards_[static_cast<std::size_t>(order(i))]);
  }
  return pass;
}

}  // namespace scaletrain::data
