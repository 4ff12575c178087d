// Several sources in the streamed order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lib/core/error.h"
#include "lib/data/order/streamed_order.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;

namespace {

using Sizes = std::vector<std::int64_t>;

const Sizes kFirst{300, 200, 300, 300, 200, 300, 300, 200};  // 8 shards, 2,100 samples
const Sizes kSecond{90, 60, 90};                             // fewer than lanes

StreamedSource streamed_source(const Sizes& sizes, std::uint64_t seed, double weight) {
  StreamedSource source;
  source.lane = {.seed = seed, .shards = std::ssize(sizes), .place = "/data/train/sources/1"};
  source.size_of = [&sizes](std::int64_t shard) { return sizes[static_cast<std::size_t>(shard)]; };
  source.weight = weight;
  return source;
}

StreamedOptions mixed_options(std::int64_t lanes = 4) {
  return {.seed = 7, .lanes = lanes, .block = 4, .blocks = 256};
}

StreamedOrder two_sources(std::int64_t lanes = 4) {
  std::vector<StreamedSource> sources;
  sources.push_back(streamed_source(kFirst, 1, 3));
  sources.push_back(streamed_source(kSecond, 2, 1));
  return {mixed_options(lanes), std::move(sources)};
}

// The first source and, in an order of its own, a small one.
StreamedOrder with_own_order(const std::shared_ptr<const Order>& own) {
  std::vector<StreamedSource> sources;
  sources.push_back(streamed_source(kFirst, 1, 1));
  sources.push_back(streamed_source(kSecond, 2, 1));
  sources.back().own = own;
  return {mixed_options(), std::move(sources)};
}

std::vector<SamplePlace> places_of(const StreamedOrder& order, std::int64_t epochs) {
  std::vector<SamplePlace> result;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t p = 0; p < order.size(); ++p) result.push_back(order.at(epoch, p));
  }
  return result;
}

}  // namespace

TEST_CASE("sources take turns by weight in every lane, each from the lane's own shards") {
  const StreamedOrder order = two_sources();
  std::map<std::int64_t, std::int64_t> of_first;  // by lane
  std::int64_t number = 0;
  for (const SamplePlace& place : places_of(order, 4)) {
    const std::int64_t lane = number++ / 4 % 4;
    if (place.shard < 8) {
      CHECK(place.shard % 4 == lane);
      ++of_first[lane];
    } else {
      CHECK(place.shard - 8 == lane % 3);  // 4 lanes share 3 shards
    }
  }
  // 4 epochs of 1,024 positions are 1,024 of each lane, whole blocks of 256.
  for (const auto& [lane, count] : of_first) CHECK(std::abs(count - 768) <= 1);
}

TEST_CASE("each source is gone through whole before a sample of it comes again") {
  const StreamedOrder order = two_sources();
  std::map<std::int64_t, std::map<std::pair<std::int64_t, std::int64_t>, int>> times;
  std::int64_t number = 0;
  for (const SamplePlace& place : places_of(order, 12)) {
    ++times[(number++ / 4 % 4) * 2 + (place.shard < 8 ? 0 : 1)][{place.shard, place.sample}];
  }
  std::set<std::pair<std::int64_t, std::int64_t>> all;
  for (const auto& [which, samples] : times) {
    int least = 1 << 20, most = 0;
    for (const auto& [place, count] : samples) {
      CHECK(all.insert(place).second);  // no sample belongs to two lanes
      least = std::min(least, count);
      most = std::max(most, count);
    }
    // The turns of a block of 256 are shuffled, so that the end of a pass and the beginning of the
    // next overlap.
    CHECK(most - least <= 2);
  }
  CHECK(all.size() == 2100 + 240);
}

TEST_CASE("the order of a mixture does not depend on what was asked for before") {
  const StreamedOrder straight = two_sources();
  const std::vector<SamplePlace> expected = places_of(straight, 6);
  const StreamedOrder sought = two_sources();
  for (std::int64_t i = std::ssize(expected) - 1; i >= 0; i -= 7) {
    CHECK(sought.at(i / 1024, i % 1024) == expected[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a source with an order of its own is gone through by all lanes together") {
  const auto own = std::make_shared<IndexedOrder>(5, kSecond, 0);
  const StreamedOrder order = with_own_order(own);
  std::map<std::pair<std::int64_t, std::int64_t>, int> times;
  std::map<std::int64_t, std::set<std::int64_t>> shards_of_lane;
  std::int64_t number = 0, taken = 0;
  for (const SamplePlace& place : places_of(order, 2)) {
    const std::int64_t lane = number++ / 4 % 4;
    if (place.shard < 8) continue;
    ++taken;
    ++times[{place.shard, place.sample}];
    shards_of_lane[lane].insert(place.shard);
  }
  CHECK(taken == 1024);  // half of 2,048
  CHECK(times.size() == 240);
  for (const auto& [place, count] : times) {
    CHECK(count >= 4);  // 1,024 are 4.3 times all of 240
    CHECK(count <= 5);
  }
  for (const auto& [lane, shards] : shards_of_lane) CHECK(shards.size() == 3);
}

TEST_CASE("a source with an order of its own may be the only one") {
  const auto own = std::make_shared<IndexedOrder>(5, kSecond, 0);
  std::vector<StreamedSource> sources;
  sources.push_back(streamed_source(kSecond, 2, 1));
  sources.back().own = own;
  const StreamedOrder order(mixed_options(), std::move(sources));
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t p = 0; p < 240; ++p) {
    const SamplePlace place = order.at(0, p);
    seen.insert({place.shard, place.sample});
  }
  CHECK(seen.size() == 240);
  CHECK(order.upcoming(1, 0, 0).empty());
}

TEST_CASE("a replacement is of the source that it replaces") {
  const auto own = std::make_shared<IndexedOrder>(5, kSecond, 0);
  const StreamedOrder order = with_own_order(own);
  for (std::int64_t p = 0; p < 200; ++p) {
    core::Philox draws(7, core::DrawPurpose::kReplacement, 1, static_cast<std::uint64_t>(p));
    const SamplePlace place = order.at(1, p), other = order.replacement(1, p, draws);
    CHECK((place.shard < 8) == (other.shard < 8));
    if (place.shard < 8) CHECK(place.shard % 4 == other.shard % 4);
  }
}

TEST_CASE("the next shards of a lane are known for each source in turn, without opening them") {
  const StreamedOrder order = two_sources();
  const Sizes next = order.upcoming(1, 0, 0);
  // Groups of one shard: two shards of the first source, and of the second its one twice.
  REQUIRE(next.size() == 4);
  CHECK(next[0] % 4 == 1);
  CHECK(next[1] == 9);
  CHECK(next[2] % 4 == 1);
  CHECK(next[3] == 9);
  // 256 turns are 192 of the first source, and no shard of it has fewer samples.
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t p = 0; p < order.size(); p += 4) {
      const Sizes told = order.upcoming(p / 4 % 4, epoch, p);
      for (std::int64_t i = p; i < p + 4; ++i) {
        CHECK(std::find(told.begin(), told.end(), order.at(epoch, i).shard) != told.end());
      }
    }
  }
  const auto own = std::make_shared<IndexedOrder>(5, kSecond, 0);
  for (const std::int64_t shard : with_own_order(own).upcoming(1, 0, 0)) CHECK(shard < 8);
}

TEST_CASE("a lane without a sample of a source names the source") {
  const Sizes few{3};
  std::vector<StreamedSource> sources;
  sources.push_back(streamed_source(kFirst, 1, 1));
  sources.push_back(streamed_source(few, 2, 1));
  const StreamedOrder order(mixed_options(), std::move(sources));
  std::string message;
  for (std::int64_t p = 0; p < 1024 && message.empty(); ++p) {
    try {
      order.at(0, p);
    } catch (const core::DataError& error) {
      message = error.what();
    }
  }
  CHECK(message == "/data/train/sources/1: lane 3 of 4 has no sample: 1 shard\n  use fewer lanes");
}

TEST_CASE("the streamed order of several sources is pinned: changing it breaks every resume") {
  CHECK(kOrderVersion == 1);
  const StreamedOrder order = two_sources();
  std::string text;
  for (std::int64_t p = 0; p < 10; ++p) {
    const SamplePlace place = order.at(2, p);
    text += std::to_string(place.shard) + ":" + std::to_string(place.sample) + " ";
  }
  CHECK(text == "4:149 8:76 4:75 4:51 1:26 1:122 9:44 1:142 10:80 10:46 ");
}
