#include "lib/data/order/order.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>
#include <utility>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

const std::vector<std::int64_t> kSizes{5, 0, 3, 8, 1, 7, 6};  // 30 samples

std::vector<std::pair<std::int64_t, std::int64_t>> epoch_of(const IndexedOrder& order,
                                                            std::int64_t epoch) {
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::int64_t p = 0; p < order.size(); ++p) {
    const SamplePlace place = order.at(epoch, p);
    places.emplace_back(place.shard, place.sample);
  }
  return places;
}

}  // namespace

TEST_CASE("an epoch holds every sample once, whatever the groups") {
  for (const std::int64_t groups : {0, 1, 2, 3, 6, 7, 100}) {
    CAPTURE(groups);
    const IndexedOrder order(3, kSizes, groups);
    CHECK(order.size() == 30);
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      const auto places = epoch_of(order, epoch);
      CHECK(std::set(places.begin(), places.end()).size() == 30);
      for (const auto& place : places) {
        CHECK(place.second < kSizes[static_cast<std::size_t>(place.first)]);
      }
    }
  }
}

TEST_CASE("epochs and seeds have orders of their own") {
  for (const std::int64_t groups : {0, 2}) {
    const IndexedOrder order(3, kSizes, groups), other(4, kSizes, groups);
    CHECK(epoch_of(order, 0) != epoch_of(order, 1));
    CHECK(epoch_of(order, 0) != epoch_of(other, 0));
    CHECK(epoch_of(order, 1) == epoch_of(IndexedOrder(3, kSizes, groups), 1));
  }
}

TEST_CASE("samples stay within their group of shards") {
  const IndexedOrder order(3, kSizes, 2);
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    // A group's samples are contiguous, so shards come in runs of at most two that never return.
    std::set<std::int64_t> left, current;
    std::size_t in_group = 0, samples = 0;
    for (const auto& place : epoch_of(order, epoch)) {
      current.insert(place.first);
      ++in_group;
      samples = 0;
      for (const std::int64_t shard : current) {
        samples += static_cast<std::size_t>(kSizes[static_cast<std::size_t>(shard)]);
      }
      CHECK(!left.contains(place.first));
      if (in_group == samples && current.size() == 2) {
        left.merge(std::exchange(current, {}));
        in_group = 0;
      }
    }
  }
}

TEST_CASE("as many groups as shards or more is one shuffle over everything") {
  CHECK(epoch_of(IndexedOrder(3, kSizes, 7), 2) == epoch_of(IndexedOrder(3, kSizes, 0), 2));
}

TEST_CASE("the order of version 1 is pinned: changing it breaks every resume") {
  CHECK(kOrderVersion == 1);
  const auto text = [](const IndexedOrder& order) {
    std::string result;
    for (std::int64_t p = 0; p < 10; ++p) {
      const SamplePlace place = order.at(1, p);
      result += std::to_string(place.shard) + ":" + std::to_string(place.sample) + " ";
    }
    return result;
  };
  CHECK(text(IndexedOrder(1234, kSizes, 0)) == "5:6 4:0 6:2 3:6 5:1 3:3 0:4 5:0 6:1 6:0 ");
  CHECK(text(IndexedOrder(1234, kSizes, 2)) == "2:0 6:4 6:3 2:2 6:0 6:5 6:1 2:1 6:2 5:4 ");
  CHECK(text(IndexedOrder(1234, {350, 350, 350, 350}, 0)) ==
        "2:337 0:204 3:272 3:38 0:6 0:52 0:344 0:34 2:19 1:343 ");
}

TEST_CASE("threads may look up different epochs at once") {
  const IndexedOrder order(3, kSizes, 2);
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = epoch_of(order, static_cast<std::int64_t>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == epoch_of(order, static_cast<std::int64_t>(i)));
  }
}
