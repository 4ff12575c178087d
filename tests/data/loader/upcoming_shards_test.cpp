#include "lib/data/loader/upcoming_shards.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

// A set of shards of ten samples that keeps what it is told.
class Told : public Dataset {
 public:
  std::int64_t size() const override { return 10 * shard_count(); }
  std::int64_t shard_count() const override { return 16; }
  std::int64_t shard_size(std::int64_t /*shard*/) const override { return 10; }
  std::int64_t shard_digest(std::int64_t /*shard*/) const override { return 0; }
  std::int64_t label(std::int64_t /*shard*/, std::int64_t /*sample*/) const override { return 0; }
  void read_into(std::int64_t /*shard*/, std::int64_t /*sample*/,
                 RawSample& /*raw*/) const override {}
  std::string image_place(std::int64_t /*shard*/, const RawSample& /*sample*/) const override {
    return "";
  }
  std::string label_place(std::int64_t /*shard*/, const RawSample& /*sample*/) const override {
    return "";
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  void announce(const std::vector<std::int64_t>& shards) const override {
    ++times;
    last = shards;
  }

  mutable int times = 0;
  mutable std::vector<std::int64_t> last;

 private:
  std::vector<std::string> classes_;
};

std::shared_ptr<const StreamedOrder> order_of_sixteen() {
  std::vector<StreamedSource> sources(1);
  sources[0].lane = {.seed = 3, .shards = 16};
  sources[0].size_of = [](std::int64_t) { return 10; };
  return std::make_shared<StreamedOrder>(StreamedOptions{.lanes = 4, .block = 2, .blocks = 80},
                                         std::move(sources));
}

}  // namespace

TEST_CASE("a rank's upcoming shards are announced before they are read, and only if they change") {
  const auto told = std::make_shared<Told>();
  const auto order = order_of_sixteen();
  const ReaderSlice slice{.reader = 1, .readers = 2, .per_device = 2, .accumulate = 2};
  UpcomingShards upcoming(told, order, slice);
  for (std::int64_t number = 0; number < 400; ++number) {
    const BatchJob job = train_job(slice, *plan_steps(slice, 160), number);
    upcoming.plan(number, job);
    for (const std::int64_t shard : told->last) CHECK(shard % 2 == 1);  // lanes 1 and 3
    for (std::int64_t i = 0; i < job.count; ++i) {
      const std::int64_t shard = order->at(job.epoch, job.position + i).shard;
      CHECK(std::find(told->last.begin(), told->last.end(), shard) != told->last.end());
    }
  }
  CHECK(told->last.size() == 4);  // the shard of each lane, and the next one
  // 400 batches of 2 samples are 80 shards; both lanes' first are told at once.
  CHECK(told->times >= 78);
  CHECK(told->times <= 80);
}

TEST_CASE("after a seek upcoming shards are announced again when their lanes are reached") {
  const auto told = std::make_shared<Told>();
  const auto order = order_of_sixteen();
  const ReaderSlice slice{.reader = 0, .readers = 1, .per_device = 2, .accumulate = 4};
  UpcomingShards upcoming(told, order, slice);
  upcoming.plan(0, train_job(slice, *plan_steps(slice, 160), 0));
  CHECK(told->last.size() == 8);
  const std::vector<std::int64_t> before = told->last;
  upcoming.plan(301, train_job(slice, *plan_steps(slice, 160), 301));
  CHECK(told->last == before);  // nobody knows yet how far 301 batches are
  for (std::int64_t number = 301; number < 309; ++number) {
    const BatchJob job = train_job(slice, *plan_steps(slice, 160), number);
    const std::int64_t shard = order->at(job.epoch, job.position).shard;
    upcoming.plan(number, job);
    CHECK(std::find(told->last.begin(), told->last.end(), shard) != told->last.end());
  }
}
