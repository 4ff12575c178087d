#include "lib/data/set/kept_set.h"

#include <doctest/doctest.h>

#include <thread>

#include "lib/core/error.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;

namespace {

// Two shards of `count` samples of 1,000 bytes; counts what is read of it.
class FarSet : public Dataset {
 public:
  explicit FarSet(std::int64_t count) : count_(count) {}

  std::int64_t size() const override { return 2 * count_; }
  std::int64_t shard_count() const override { return 2; }
  std::int64_t shard_size(std::int64_t /*shard*/) const override { return count_; }
  std::int64_t shard_digest(std::int64_t /*shard*/) const override { return 0; }
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override {
    return 10 * shard + sample;
  }
  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override {
    ++reads;
    if (sample == broken) throw core::DataError("set", "is broken");
    raw.image = std::string(1000, static_cast<char>('a' + sample));
    raw.label = label(shard, sample);
    raw.key = std::to_string(sample);
    raw.shard = std::to_string(shard);
    raw.stored_shard = shard;
  }
  void announce(const std::vector<std::int64_t>& shards) const override { announced = shards; }
  std::string image_place(std::int64_t shard, const RawSample& sample) const override {
    return std::to_string(shard) + ":" + sample.key;
  }
  std::string label_place(std::int64_t shard, const RawSample& sample) const override {
    return image_place(shard, sample);
  }
  const std::vector<std::string>& classes() const override { return classes_; }

  mutable std::atomic<int> reads = 0;
  mutable std::vector<std::int64_t> announced;
  std::int64_t broken = -1;

 private:
  std::int64_t count_;
  std::vector<std::string> classes_{"cat", "dog"};
};

bool same(const RawSample& a, const RawSample& b) {
  return a.image == b.image && a.label == b.label && a.key == b.key && a.shard == b.shard &&
         a.stored_shard == b.stored_shard;
}

// Goes through all of both; whether they were the same.
bool same_samples(const Dataset& set, std::int64_t count) {
  const FarSet expected(count);
  bool result = true;
  for (std::int64_t i = 0; i < 2 * count; ++i) {
    result = result && same(set.read(i % 2, i / 2), expected.read(i % 2, i / 2));
  }
  return result;
}

}  // namespace

TEST_CASE("a sample is read once, by whatever thread") {
  const auto far = std::make_shared<FarSet>(20);
  const KeptSet set(far, 1 << 20);
  CHECK(set.size() == 40);
  CHECK(set.classes() == far->classes());
  CHECK(set.image_place(1, set.read(1, 3)) == "1:3");
  CHECK(same_samples(set, 20));
  CHECK(far->reads == 40);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { right += same_samples(set, 20) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 4);
  CHECK(far->reads == 40);
}

TEST_CASE("what does not fit is read each time, and what fits stays") {
  const auto far = std::make_shared<FarSet>(20);
  const KeptSet set(far, 20'000);  // not all of 40,000
  CHECK(same_samples(set, 20));
  const int first = far->reads;
  CHECK(first == 40);
  CHECK(same_samples(set, 20));
  const int again = far->reads - first;
  CHECK(again > 20);  // 1,000 bytes and more each
  CHECK(again < 30);
  CHECK(same_samples(set, 20));
  CHECK(far->reads - first == 2 * again);  // the same ones

  const KeptSet none(far, 100);
  CHECK(same_samples(none, 20));
}

TEST_CASE("an error is not kept") {
  const auto far = std::make_shared<FarSet>(3);
  far->broken = 1;
  const KeptSet set(far, 1 << 20);
  CHECK_THROWS_AS(set.read(0, 1), core::DataError);
  far->broken = -1;
  CHECK(set.read(0, 1).key == "1");
}

TEST_CASE("shards that are whole in memory are not fetched again") {
  const auto far = std::make_shared<FarSet>(2);
  const KeptSet set(far, 1 << 20);
  set.read(1, 0);
  set.announce({1, 0});
  CHECK(far->announced == std::vector<std::int64_t>{1, 0});
  set.read(1, 1);
  set.announce({1, 0});
  CHECK(far->announced == std::vector<std::int64_t>{0});
}
