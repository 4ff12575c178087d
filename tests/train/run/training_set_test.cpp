#include "lib/train/run/training_set.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/log.h"
#include "lib/data/set/set_digest.h"
#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;
using Numbers = std::vector<std::int64_t>;

// Three shards of which some are open; no file.
class OpenInPart : public data::SampleSet {
 public:
  OpenInPart(Numbers sizes, Numbers digests)
      : sizes_(std::move(sizes)), digests_(std::move(digests)) {}

  std::int64_t size() const override { return 9; }
  std::int64_t shard_count() const override { return 3; }
  std::int64_t shard_digest(std::int64_t shard) const override { return shard; }
  Numbers known_sizes() const override { return sizes_; }
  Numbers open_digests() const override { return digests_; }
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  Numbers sizes_, digests_;
  std::vector<std::string> classes_;
};

constexpr bool kStreamed = true;

// Two ranks gather what each has opened, after a resume that knew `before`: the digests of each
// and what was warned of.
std::vector<testing::RankResult> gathered(const Numbers& before) {
  return testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    std::string said;
    core::set_warning_listener([&](const std::string& line) { said += line; });
    const auto set = env.rank == 0
                         ? std::make_shared<OpenInPart>(Numbers{3, -1, -1}, Numbers{70, -1, -1})
                         : std::make_shared<OpenInPart>(Numbers{-1, 4, -1}, Numbers{-1, 5, -1});
    dist::Group group(env, at::kCPU, 30s);
    format::TrainState state;
    state.shard_digests = before;
    TrainingSet({.set = set, .stream = nullptr, .contents = ""}, kStreamed, 8).gather(group, state);
    return fmt::format("{} {} {}", fmt::join(state.shard_sizes, ","),
                       fmt::join(state.shard_digests, ","), said);
  });
}

TEST_CASE("every rank knows of the shards that any rank has opened, and what was known before") {
  for (const auto& result : gathered({})) CHECK(result.text == "3,4,-1 70,5,-1 ");
  for (const auto& result : gathered({70, 5, 9})) CHECK(result.text == "3,4,-1 70,5,9 ");
}

TEST_CASE("rank 0 warns of shards that others found changed; of its own it has warned") {
  const auto results = gathered({71, 6, 9});
  CHECK(results[0].text.starts_with(
      "3,4,-1 70,5,9 warning: the resumed run is not bit for bit equal: 1 shard that other ranks "
      "read holds other samples"));
  CHECK(results[1].text == "3,4,-1 70,5,9 ");
}

TEST_CASE("a set in the indexed order is counted and has digests; a streamed one has not") {
  const auto set = std::make_shared<OpenInPart>(Numbers{}, Numbers{});
  format::TrainState state;
  state.shard_sizes = state.shard_digests = {1};
  TrainingSet({.set = set, .stream = nullptr, .contents = ""}, kStreamed, 8).describe(state);
  CHECK(state.set_samples == 0);
  CHECK(state.index_digest.empty());
  CHECK(state.set_digest.empty());
  CHECK(state.per_device == 8);
  CHECK(state.shard_sizes == Numbers{1});
  CHECK(state.shard_digests == Numbers{1});

  TrainingSet({.set = set, .stream = nullptr, .contents = "00ff"}, false, 8).describe(state);
  CHECK(state.set_samples == 9);
  CHECK(state.index_digest == data::index_digest(*set));
  CHECK(state.set_digest == "00ff");
  CHECK(state.per_device == 0);
  CHECK(state.shard_sizes.empty());
  CHECK(state.shard_digests.empty());
}

}  // namespace
}  // namespace scaletrain::train
