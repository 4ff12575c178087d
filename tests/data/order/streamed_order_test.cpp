#include "lib/data/order/streamed_order.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <thread>

#include "lib/core/error.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;

namespace {

// 12 shards of unequal size, one of them empty: 200 samples.
const std::vector<std::int64_t> kLaneShards{20, 13, 0, 30, 17, 11, 25, 9, 21, 14, 28, 12};

struct Options {
  std::int64_t lanes = 1, shuffle_shards = 2, blocks = 48, shards = std::ssize(kLaneShards);
};

StreamedOptions streamed(const Options& options) {
  return {.seed = 7, .lanes = options.lanes, .block = 4, .blocks = options.blocks};
}

StreamedOrder order_of(const Options& options, StreamedLane::SizeOf size_of) {
  std::vector<StreamedSource> sources(1);
  sources[0].lane = {.seed = 7, .shards = options.shards, .shuffle_shards = options.shuffle_shards};
  sources[0].size_of = std::move(size_of);
  return {streamed(options), std::move(sources)};
}

StreamedOrder order_of(const Options& options,
                       const std::vector<std::int64_t>& sizes = kLaneShards) {
  return order_of(options,
                  [&sizes](std::int64_t shard) { return sizes[static_cast<std::size_t>(shard)]; });
}

std::vector<SamplePlace> places(const StreamedOrder& order, std::int64_t epochs) {
  std::vector<SamplePlace> result;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t p = 0; p < order.size(); ++p) result.push_back(order.at(epoch, p));
  }
  return result;
}

}  // namespace

TEST_CASE("block after block comes from lane after lane, and a lane has its own shards alone") {
  const StreamedOrder order = order_of({.lanes = 4});
  CHECK(order.size() == 192);
  std::int64_t number = 0;
  for (const SamplePlace& place : places(order, 5)) {
    CHECK(place.shard % 4 == number / 4 % 4);
    CHECK(place.sample < kLaneShards[static_cast<std::size_t>(place.shard)]);
    ++number;
  }
}

TEST_CASE("a lane goes through all its samples before one comes again") {
  for (const std::int64_t lanes : {1, 4, 12, 24, 36}) {  // more lanes than shards share them
    CAPTURE(lanes);
    const std::vector<std::int64_t> sizes(12, 20);
    const StreamedOrder order = order_of({.lanes = lanes, .blocks = 72}, sizes);
    std::map<std::int64_t, std::map<std::pair<std::int64_t, std::int64_t>, int>> seen;
    std::int64_t number = 0;
    for (const SamplePlace& place : places(order, 10)) {
      ++seen[number++ / 4 % lanes][{place.shard, place.sample}];
    }
    std::set<std::pair<std::int64_t, std::int64_t>> all;
    for (const auto& [lane, samples] : seen) {
      int least = 1000, most = 0;
      for (const auto& [place, times] : samples) {
        CHECK(all.insert(place).second);  // no sample belongs to two lanes
        least = std::min(least, times);
        most = std::max(most, times);
      }
      CHECK(most - least <= 1);
    }
    CHECK(all.size() == 240);
  }
}

TEST_CASE("samples stay within groups of shuffle_shards, and passes have orders of their own") {
  // An epoch is a pass: 200 samples.
  const StreamedOrder order = order_of({.lanes = 1, .shuffle_shards = 3, .blocks = 50});
  std::vector<std::vector<std::int64_t>> shards;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    shards.emplace_back();
    std::set<std::int64_t> before, group;
    std::int64_t left = 0;
    for (std::int64_t p = 0; p < 200; ++p) {
      const std::int64_t shard = order.at(epoch, p).shard;
      CHECK(!before.contains(shard));
      if (group.insert(shard).second) {
        left += kLaneShards[static_cast<std::size_t>(shard)];
        shards.back().push_back(shard);
      }
      CHECK(group.size() <= 3);
      if (--left == 0 && group.size() >= 2) before.merge(group), group.clear();
    }
  }
  CHECK(shards[0] != shards[1]);
  CHECK(shards[1] != shards[2]);
}

TEST_CASE("a shard's size is asked for when a position needs it, group by group") {
  std::set<std::int64_t> asked;
  const StreamedOrder order = order_of({.lanes = 4}, [&](std::int64_t shard) {
    asked.insert(shard);
    return kLaneShards[static_cast<std::size_t>(shard)];
  });
  CHECK(asked.empty());
  order.at(0, 0);
  CHECK(asked.size() == 2);  // one group of lane 0, which has three shards
  order.at(0, 4);
  CHECK(asked.size() == 4);  // and one of lane 1
  for (const std::int64_t shard : asked) CHECK(shard % 4 <= 1);
  order.at(1000, 0);
  CHECK(asked.size() == 5);  // all of lane 0
}

TEST_CASE("a position's sample does not depend on what was asked for before, nor on threads") {
  const Options options{.lanes = 4};
  const StreamedOrder straight = order_of(options);
  const std::vector<SamplePlace> expected = places(straight, 6);
  const StreamedOrder sought = order_of(options);
  for (std::int64_t i = static_cast<std::int64_t>(expected.size()) - 1; i >= 0; i -= 7) {
    CHECK(sought.at(i / 192, i % 192) == expected[static_cast<std::size_t>(i)]);
  }
  const StreamedOrder shared = order_of(options);
  std::vector<std::vector<SamplePlace>> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = places(shared, 6); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : found) CHECK(one == expected);
}

TEST_CASE("a replacement is another sample of the same group of shards") {
  const StreamedOrder order = order_of({.lanes = 4, .shuffle_shards = 1});  // groups of one shard
  std::set<std::int64_t> drawn;
  for (int i = 0; i < 50; ++i) {
    core::Philox draws(7, core::DrawPurpose::kReplacement, 1, static_cast<std::uint64_t>(i));
    const SamplePlace place = order.replacement(1, 5, draws);
    CHECK(place.shard == order.at(1, 5).shard);
    drawn.insert(place.sample);
  }
  CHECK(drawn.size() > 5);
}

TEST_CASE("a lane without samples is an error, not a hang") {
  const std::vector<std::int64_t> sizes{3, 0};
  const StreamedOrder order = order_of({.lanes = 2, .shards = 2}, sizes);
  CHECK(order.at(0, 0).shard == 0);
  try {
    order.at(0, 4);  // the second block is lane 1's
    FAIL("nothing was thrown");
  } catch (const core::DataError& error) {
    CHECK(std::string(error.what()) ==
          "/data/lanes: lane 1 of 2 has no sample: 2 shards\n  use fewer lanes");
  }
}

TEST_CASE("the next shards of a lane are known without opening them") {
  std::set<std::int64_t> asked;
  const StreamedOrder order = order_of({.lanes = 4}, [&](std::int64_t shard) {
    asked.insert(shard);
    return kLaneShards[static_cast<std::size_t>(shard)];
  });
  const std::vector<std::int64_t> next = order.upcoming(1, 0, 0);
  CHECK(asked.empty());
  CHECK(next.size() == 4);  // the lane's three shards in groups of two, and the next pass's first
  CHECK(std::set(next.begin(), next.begin() + 3) == std::set<std::int64_t>{1, 5, 9});
  // Along the whole way, a position's shard is among those told before it.
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t p = 0; p < order.size(); p += 4) {
      const std::vector<std::int64_t> told = order.upcoming(p / 4 % 4, epoch, p);
      for (std::int64_t i = p; i < p + 4; ++i) {
        const std::int64_t shard = order.at(epoch, i).shard;
        CHECK(std::find(told.begin(), told.end(), shard) != told.end());
      }
    }
  }
}

TEST_CASE("an error while a shard is opened leaves the order as it was") {
  bool broken = true;
  const StreamedOrder order = order_of({.lanes = 4}, [&](std::int64_t shard) {
    if (broken && shard == 4) throw core::StorageError("shard", "is gone");
    return kLaneShards[static_cast<std::size_t>(shard)];
  });
  std::vector<SamplePlace> found;
  for (std::int64_t p = 0; p < 192; ++p) {
    try {
      found.push_back(order.at(0, p));
    } catch (const core::StorageError&) {
      broken = false;
      found.push_back(order.at(0, p));
    }
  }
  CHECK(!broken);
  CHECK(found == places(order_of({.lanes = 4}), 1));
}

TEST_CASE("the streamed order of version 1 is pinned: changing it breaks every resume") {
  CHECK(kOrderVersion == 1);
  const StreamedOrder order = order_of({.lanes = 4});
  std::string text;
  for (std::int64_t p = 0; p < 10; ++p) {
    const SamplePlace place = order.at(2, p);
    text += std::to_string(place.shard) + ":" + std::to_string(place.sample) + " ";
  }
  CHECK(text == "8:4 8:16 8:10 8:8 9:2 1:0 9:10 1:10 10:5 10:20 ");
}
