// Streams whose global batch grows: what lies in which step, repeated and streamed too.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "lib/data/loader/image_stream.h"
#include "lib/data/order/order.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/data/loader/batch_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::data {
namespace {

// 30 samples in three shards; the value of every pixel is the number of the sample.
class ThreeShards {
 public:
  ThreeShards() {
    recipe::Source source;
    for (int i = 0; i < 3; ++i) {
      source.shards.push_back(folder.write(fmt::format("{}.tar", i), grey_shard(10 * i, 10)));
    }
    dataset = open_dataset(source, "");
    options.image_size = 4;
    options.num_classes = 10;
    options.seed = 9;
  }

  // The numbers of each of `steps` steps of a run of one rank, from `from` on.
  std::vector<std::vector<int>> steps_of(int steps, Position from = {}) const {
    const auto loader = train_images(dataset, options, kSlice, *pool);
    const auto plan = loader->growing();
    loader->seek(from);
    const std::int64_t first = plan->first_step(from.epoch) + from.step;
    std::vector<std::vector<int>> result;
    for (std::int64_t step = first; step < first + steps; ++step) {
      std::vector<int>& all = result.emplace_back();
      for (std::int64_t i = 0; i < plan->sizes().of_step(step) / 2; ++i) {
        const Batch batch = *loader->next();
        CHECK(batch.epoch == plan->at(step).epoch);
        const std::vector<int> own = numbers(batch);
        all.insert(all.end(), own.begin(), own.end());
      }
    }
    return result;
  }

  // 4, 4, 4, 8 and 8 samples of the first epoch, then 12 twice each.
  static constexpr ReaderSlice kSlice{.reader = 0,
                                      .readers = 1,
                                      .per_device = 2,
                                      .accumulate = 6,
                                      .ramp = core::BatchRamp{4, 4, 24}};
  TemporaryFolder folder;
  std::shared_ptr<const Dataset> dataset;
  std::unique_ptr<core::BufferPool> pool = core::make_host_pool();
  LoaderOptions options;
};

}  // namespace

TEST_CASE("steps of a batch that grows are the epoch's order one after the other, also sought") {
  const ThreeShards shards;
  const std::vector<std::vector<int>> steps = shards.steps_of(9);
  const IndexedOrder order(9, {10, 10, 10}, 0);
  const core::StepPlan plan(core::BatchSizes(12, ThreeShards::kSlice.ramp), 30);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const core::StepPlace place = plan.at(static_cast<std::int64_t>(i));
    for (std::size_t sample = 0; sample < steps[i].size(); ++sample) {
      const auto position = place.position + static_cast<std::int64_t>(sample);
      const SamplePlace found = order.at(place.epoch, position);
      CHECK(steps[i][sample] == 10 * found.shard + found.sample);
    }
  }
  CHECK(shards.steps_of(6, {0, 3}) == std::vector(steps.begin() + 3, steps.end()));
  CHECK(shards.steps_of(3, {1, 1}) == std::vector(steps.begin() + 6, steps.end()));
}

TEST_CASE("each step of a batch that grows has the next samples so many times") {
  ThreeShards shards;
  shards.options.repeats = 3;
  const std::vector<std::vector<int>> steps = shards.steps_of(9);
  const IndexedOrder order(9, {10, 10, 10}, 0);
  const core::StepPlan plan(core::BatchSizes(12, ThreeShards::kSlice.ramp), 30);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const core::StepPlace place = plan.at(static_cast<std::int64_t>(i));
    std::multiset<int> expected;
    for (std::size_t turn = 0; turn < steps[i].size(); ++turn) {
      const auto position = place.position + static_cast<std::int64_t>(turn);
      const SamplePlace found = order.at(place.epoch, position / 3);
      expected.insert(static_cast<int>(10 * found.shard + found.sample));
    }
    CHECK(std::multiset<int>(steps[i].begin(), steps[i].end()) == expected);
    if (steps[i].size() < 6) continue;  // too few different ones
    for (std::size_t pair = 0; pair < steps[i].size(); pair += 2) {
      CHECK(steps[i][pair] != steps[i][pair + 1]);  // mixup never mixes a sample with itself
    }
  }
}

TEST_CASE("in the streamed order a batch that grows goes on where the epoch before it ended") {
  ThreeShards shards;
  shards.options.streamed = true;
  shards.options.lanes = 1;
  std::vector<int> all;
  for (const std::vector<int>& step : shards.steps_of(7)) {
    all.insert(all.end(), step.begin(), step.end());
  }
  REQUIRE(all.size() == 28 + 24);
  // One lane's first pass: none twice before all have come, though the epoch ended after 28.
  CHECK(std::set<int>(all.begin(), all.begin() + 30).size() == 30);
}

}  // namespace scaletrain::data
