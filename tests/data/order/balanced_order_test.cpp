#include "lib/data/order/balanced_order.h"

#include <doctest/doctest.h>

#include <map>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

const std::vector<std::int64_t> kClassShards{60, 0, 40};  // 100 samples

// Labels 0, 3 and 7: 90, 9 and 1 samples.
std::int64_t label_of(std::int64_t shard, std::int64_t sample) {
  const std::int64_t number = shard == 0 ? sample : 60 + sample;
  if (number == 99) return 7;
  return number % 11 == 5 ? 3 : 0;
}

}  // namespace

TEST_CASE("every class has an equal part of every epoch, to within one") {
  const BalancedOrder order(3, kClassShards, label_of);
  CHECK(order.size() == 100);
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::map<std::int64_t, int> count;
    for (std::int64_t p = 0; p < 100; ++p) {
      const SamplePlace place = order.at(epoch, p);
      ++count[label_of(place.shard, place.sample)];
    }
    CHECK(count.size() == 3);  // classes 1, 2, ... have no sample
    for (const auto& [label, times] : count) CHECK(std::abs(times - 100.0 / 3) < 1);
  }
}

TEST_CASE("a class is gone through whole before a sample of it comes again") {
  const BalancedOrder order(3, kClassShards, label_of);
  std::map<std::int64_t, std::map<std::pair<std::int64_t, std::int64_t>, int>> seen;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    for (std::int64_t p = 0; p < 100; ++p) {
      const SamplePlace place = order.at(epoch, p);
      ++seen[label_of(place.shard, place.sample)][{place.shard, place.sample}];
    }
  }
  CHECK(seen[0].size() == 90);
  CHECK(seen[3].size() == 9);
  CHECK(seen[7].size() == 1);
  for (const auto& [label, samples] : seen) {
    int least = 1000, most = 0;
    for (const auto& [place, times] : samples) {
      least = std::min(least, times);
      most = std::max(most, times);
    }
    CHECK(most - least <= 1);
  }
}

TEST_CASE("epochs and seeds have balanced orders of their own, and each is the same again") {
  const auto text = [](std::uint64_t seed, std::int64_t epoch) {
    const BalancedOrder order(seed, kClassShards, label_of);
    std::string result;
    for (std::int64_t p = 0; p < 10; ++p) {
      const SamplePlace place = order.at(epoch, p);
      result += std::to_string(place.shard) + ":" + std::to_string(place.sample) + " ";
    }
    return result;
  };
  CHECK(text(3, 0) != text(3, 1));
  CHECK(text(3, 0) != text(4, 0));
  CHECK(text(3, 1) == "2:39 0:16 0:27 2:39 2:25 2:39 0:27 2:27 2:39 0:34 ");  // version 1
}
