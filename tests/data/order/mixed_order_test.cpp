#include "lib/data/order/mixed_order.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

std::shared_ptr<const Order> shuffled(std::uint64_t seed, std::vector<std::int64_t> sizes) {
  return std::make_shared<IndexedOrder>(seed, std::move(sizes), 0);
}

// Two shards of 70 and 30 samples, one of 40, one of 500, with weights 5, 2 and 1.
MixedOrder three_sources(std::int64_t size) {
  return {9,
          {{shuffled(1, {70, 30}), 0, 5}, {shuffled(2, {40}), 2, 2}, {shuffled(3, {500}), 3, 1}},
          size};
}

std::size_t source_of(const SamplePlace& place) {
  return place.shard < 2 ? 0 : static_cast<std::size_t>(place.shard - 1);
}

}  // namespace

TEST_CASE("each source gets its share of every stretch of a run, not by chance") {
  // Blocks of 4096 are shuffled within, so that their ends are where the shares can be counted.
  const MixedOrder order = three_sources(4096);
  std::vector<double> count(3);
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    for (std::int64_t p = 0; p < order.size(); ++p) ++count[source_of(order.at(epoch, p))];
    const double seen = static_cast<double>(epoch + 1) * 4096;
    CHECK(std::abs(count[0] - seen * 5 / 8) <= 1);
    CHECK(std::abs(count[1] - seen * 2 / 8) <= 2);
    CHECK(std::abs(count[2] - seen * 1 / 8) <= 2);
  }
}

TEST_CASE("a source is gone through whole before a sample of it comes again") {
  const MixedOrder order = three_sources(1000);
  std::vector<std::map<std::pair<std::int64_t, std::int64_t>, int>> seen(3);
  for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
    for (std::int64_t p = 0; p < order.size(); ++p) {
      const SamplePlace place = order.at(epoch, p);
      ++seen[source_of(place)][{place.shard, place.sample}];
    }
  }
  const std::vector<std::size_t> sizes{100, 40, 500};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(seen[i].size() == sizes[i]);
    int least = 1 << 20, most = 0;
    for (const auto& [place, times] : seen[i]) {
      least = std::min(least, times);
      most = std::max(most, times);
    }
    CHECK(most - least <= 1);
  }
}

TEST_CASE("sources take turns in another order in every block and epoch") {
  const MixedOrder order = three_sources(10000);
  const auto turns = [&](std::int64_t epoch, std::int64_t begin) {
    std::vector<std::size_t> result;
    for (std::int64_t p = begin; p < begin + 50; ++p) {
      result.push_back(source_of(order.at(epoch, p)));
    }
    return result;
  };
  CHECK(turns(0, 0) != turns(0, 4096));
  CHECK(turns(0, 0) != turns(1, 0));
  CHECK(turns(1, 0) == [&] {
    std::vector<std::size_t> again;
    const MixedOrder other = three_sources(10000);
    for (std::int64_t p = 0; p < 50; ++p) again.push_back(source_of(other.at(1, p)));
    return again;
  }());
}

TEST_CASE("one source alone is its own order, cut into epochs of another length") {
  const auto whole = shuffled(4, {7, 5});
  const MixedOrder same(9, {{whole, 0, 1}}, 12), longer(9, {{whole, 0, 3}}, 20);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t p = 0; p < 12; ++p) CHECK(same.at(epoch, p) == whole->at(epoch, p));
    for (std::int64_t p = 0; p < 20; ++p) {
      const std::int64_t number = 20 * epoch + p;
      CHECK(longer.at(epoch, p) == whole->at(number / 12, number % 12));
    }
  }
}

TEST_CASE("shares hold at any position of a long run, and a tiny weight gets its turns") {
  const MixedOrder order(9, {{shuffled(1, {10}), 0, 1e6}, {shuffled(2, {10}), 1, 1}}, 1'000'001);
  std::int64_t rare = 0;
  for (std::int64_t p = 0; p < order.size(); ++p) rare += order.at(3, p).shard == 1 ? 1 : 0;
  CHECK(std::abs(static_cast<double>(rare) - 1) <= 1);
  // Position 4e18 of a run: still a place, without overflow.
  const SamplePlace place = order.at(std::int64_t{4'000'000'000'000}, 7);
  CHECK(place.sample >= 0);
  CHECK(place.sample < 10);
}

TEST_CASE("the mixed order of version 1 is pinned: changing it breaks every resume") {
  CHECK(kOrderVersion == 1);
  const MixedOrder order = three_sources(1000);
  std::string text;
  for (std::int64_t p = 0; p < 10; ++p) {
    const SamplePlace place = order.at(1, p);
    text += std::to_string(place.shard) + ":" + std::to_string(place.sample) + " ";
  }
  CHECK(text == "1:14 0:69 0:19 0:41 0:53 2:0 3:360 0:39 1:3 0:1 ");
}
