#include "lib/data/order/streamed_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/data/order/permutation.h"

namespace scaletrain::data {

class StreamedOrder::Lane {
 public:
  Lane(const StreamedOptions& options, std::int64_t lane, SizeOf size_of)
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

  SamplePlace at(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const Found found = find(number);
    const Permutation order(permutation_key(options_.seed, core::DrawPurpose::kSampleOrder,
                                            found.pass->number, (lane_ << 32) + found.group),
                            found.end - found.begin);
    return place(*found.pass, found.begin + order(found.offset - found.begin));
  }

  SamplePlace replacement(std::int64_t number, core::Philox& draws) {
    const std::lock_guard lock(mutex_);
    const Found found = find(number);
    const auto drawn = draws.below(static_cast<std::uint64_t>(found.end - found.begin));
    return place(*found.pass, found.begin + static_cast<std::int64_t>(drawn));
  }

  std::vector<std::int64_t> upcoming(std::int64_t number) {
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

 private:
  // The lane's shards in the order of one pass, and where each ends; sizes are asked for a group at
  // a time.
  struct Pass {
    std::int64_t number = 0;
    std::vector<std::int64_t> shards;
    std::vector<std::int64_t> ends;  // of the shards whose size is known

    std::int64_t end() const { return ends.empty() ? 0 : ends.back(); }
    bool whole() const { return ends.size() == shards.size(); }
  };

  struct Found {
    const Pass* pass = nullptr;
    std::int64_t offset = 0, group = 0, begin = 0, end = 0;  // the group's first and last + 1
  };

  Found find(std::int64_t number) {
    Pass& first = pass(0);
    while (!first.whole() && first.end() <= number) learn_group(first);
    if (number < first.end()) return in_pass(first, number);
    const std::int64_t total = first.end();
    if (total == 0) {
      throw core::DataError("/data/lanes",
                            fmt::format("lane {} of {} has no sample: {} shards", lane_,
                                        options_.lanes, options_.shards),
                            "use fewer lanes");
    }
    Pass& later = pass(number / total);
    while (!later.whole()) learn_group(later);
    return in_pass(later, number % total);
  }

  Found in_pass(const Pass& pass, std::int64_t offset) const {
    const auto shard =
        std::upper_bound(pass.ends.begin(), pass.ends.end(), offset) - pass.ends.begin();
    const std::int64_t size = group_size(), group = shard / size;
    const auto last = std::min(static_cast<std::size_t>((group + 1) * size), pass.ends.size());
    const auto before = static_cast<std::size_t>(group * size);
    return {&pass, offset, group, before == 0 ? 0 : pass.ends[before - 1], pass.ends[last - 1]};
  }

  SamplePlace place(const Pass& pass, std::int64_t offset) const {
    const auto i = static_cast<std::size_t>(
        std::upper_bound(pass.ends.begin(), pass.ends.end(), offset) - pass.ends.begin());
    const std::int64_t sample = offset - (i == 0 ? 0 : pass.ends[i - 1]);
    return {pass.shards[i], sample * parts_ + part_};
  }

  std::int64_t group_size() const { return std::max<std::int64_t>(options_.shuffle_shards, 1); }

  void learn_group(Pass& pass) const {
    const std::size_t known = pass.ends.size();
    const auto last = std::min(known + static_cast<std::size_t>(group_size()), pass.shards.size());
    std::vector<std::int64_t> ends = pass.ends;  // an error leaves the pass as it was
    for (std::size_t i = known; i < last; ++i) {
      const std::int64_t samples = size_of_(pass.shards[i]);
      const std::int64_t own = std::max<std::int64_t>(samples - part_ + parts_ - 1, 0) / parts_;
      ends.push_back((ends.empty() ? 0 : ends.back()) + own);
    }
    pass.ends = std::move(ends);
  }

  // The first pass is kept, for its length; of the others two, as read-ahead crosses over.
  Pass& pass(std::int64_t number) {
    if (number == 0) {
      if (first_.shards.empty()) first_ = make_pass(0);
      return first_;
    }
    std::optional<Pass>& kept = recent_[static_cast<std::size_t>(number % 2)];
    if (!kept || kept->number != number) kept = make_pass(number);
    return *kept;
  }

  Pass make_pass(std::int64_t number) const {
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

  StreamedOptions options_;
  std::int64_t lane_;
  SizeOf size_of_;
  std::vector<std::int64_t> shards_;
  std::int64_t part_ = 0, parts_ = 1;  // it has every parts_-th sample of its shards, from part_ on
  std::mutex mutex_;
  Pass first_;
  std::array<std::optional<Pass>, 2> recent_;
};

StreamedOrder::StreamedOrder(const StreamedOptions& options, const SizeOf& size_of)
    : options_(options) {
  for (std::int64_t lane = 0; lane < options.lanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>(options, lane, size_of));
  }
}

StreamedOrder::~StreamedOrder() = default;

SamplePlace StreamedOrder::at(std::int64_t epoch, std::int64_t position) const {
  const Turn found = turn(epoch, position);
  return lanes_[static_cast<std::size_t>(found.lane)]->at(found.number);
}

SamplePlace StreamedOrder::replacement(std::int64_t epoch, std::int64_t position,
                                       core::Philox& draws) const {
  const Turn found = turn(epoch, position);
  return lanes_[static_cast<std::size_t>(found.lane)]->replacement(found.number, draws);
}

std::vector<std::int64_t> StreamedOrder::upcoming(std::int64_t lane, std::int64_t epoch,
                                                  std::int64_t position) const {
  const std::int64_t block = epoch * options_.blocks + position / options_.block;
  const std::int64_t turns = (block + options_.lanes - 1 - lane) / options_.lanes;
  return lanes_[static_cast<std::size_t>(lane)]->upcoming(turns * options_.block);
}

StreamedOrder::Turn StreamedOrder::turn(std::int64_t epoch, std::int64_t position) const {
  const std::int64_t block = epoch * options_.blocks + position / options_.block;
  return {block % options_.lanes,
          block / options_.lanes * options_.block + position % options_.block};
}

}  // namespace scaletrain::data
