// Bit flips in the state of one of several ranks: each is found, with its tensor and element, and
// named by a majority. SCALETRAIN_LONG=1 plants 1,000.
#include "lib/train/integrity/replica_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "lib/train/build/build.h"
#include "lib/train/rules/bit_flip.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

int flips() {
  const char* const is_long = std::getenv("SCALETRAIN_LONG");
  return is_long != nullptr && std::string(is_long) == "1" ? 1000 : 40;
}

struct Layout {
  std::string name;
  int ranks;
  std::vector<std::string> changes;
  int replicas;  // ranks that own the same elements
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> result{
      {"data parallel", 2, {}, 2},
      {"data parallel", 4, {}, 4},
      {"FSDP", 4, {R"(parallel={"shard": 2, "replica": 2})"}, 2},
      {"ZeRO-1", 4, {R"(parallel={"shard": 2, "replica": 2, "shard_level": "optimizer"})"}, 2},
      {"tensor parallel", 4, {testing::kVitChange, R"(parallel={"tensor": 2, "replica": 2})"}, 2}};
  return result;
}

std::vector<at::Tensor> state_of(const Run& run) {
  std::vector<at::Tensor> result;
  for (const auto& [name, shard] : run.trained()) result.push_back(shard.tensor);
  for (const auto& [name, shard] : run.learner.optimizer->state()) {
    if (shard.tensor.defined() && shard.tensor.is_floating_point()) result.push_back(shard.tensor);
  }
  return result;
}

}  // namespace

TEST_CASE(
    "each flipped bit of weights and optimizer state is found, and none where none is flipped") {
  for (const Layout& layout : layouts()) {
    CAPTURE(layout.name);
    CAPTURE(layout.ranks);
    const testing::TinyRun tiny;
    std::vector<std::string> changes{R"(optimizer={"name": "adamw", "lr": 0.01})",
                                     R"(batch={"global": 8, "per_device": 2})"};
    changes.insert(changes.end(), layout.changes.begin(), layout.changes.end());
    const recipe::Recipe recipe = tiny.recipe(changes);
    const auto body = [&](const core::WorkerEnv& env) {
      const auto run = build_run(recipe, env, {}, {});
      ReplicaCheck check(*run);
      if (!check.not_applicable().empty()) return check.not_applicable();
      std::string wrong;
      std::mt19937_64 draw(7);
      for (int i = 0; i < flips(); ++i) {
        const int rank = static_cast<int>(draw() % static_cast<unsigned>(layout.ranks));
        const auto index = static_cast<std::int64_t>(draw() >> 20U);
        const int bit = static_cast<int>(draw() % 32);
        const auto flip = [&] {
          if (env.rank == rank) flip_bit(state_of(*run), index, bit);
        };
        if (check.compare()) wrong += fmt::format("a false alarm before flip {}; ", i);
        flip();
        const auto found = check.compare();
        flip();
        const std::vector<int> named =
            layout.replicas > 2 ? std::vector<int>{rank} : std::vector<int>{};
        const bool is_right = found && found->tensors == 1 && found->wrong == named &&
                              static_cast<int>(found->values.size()) == layout.replicas;
        if (!is_right) {
          wrong += fmt::format("flip {} of bit {}: {}; ", i, bit, found ? found->text() : "none");
        }
      }
      run->mesh->end("the end");
      return wrong.empty() ? "all found" : wrong;
    };
    for (const auto& rank :
         testing::run_ranks({.world_size = layout.ranks, .limit_s = 300}, body)) {
      CHECK(rank.text == "all found");
    }
  }
}

TEST_CASE("a difference is described with tensor, element of the full tensor, values and ranks") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({R"(parallel={"shard": 2, "replica": 2})"});
  for (const auto& rank : testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
         const auto run = build_run(recipe, env, {}, {});
         // The last element of the last tensor of rank 3, whose replica is rank 1.
         const units::Shards trained = run->trained();
         const units::Shard& last = trained.rbegin()->second;
         last.tensor.flatten()[-1].fill_(env.rank == 3 ? 2.5 : 0.5);
         const auto found = ReplicaCheck(*run).compare();
         const std::int64_t size = format::element_count(last.shape);
         run->mesh->end("the end");
         if (!found) return std::string("equal");
         const bool is_last = env.rank % 2 == 0 || (found->element == size - 1 &&
                                                    found->tensor == trained.rbegin()->first);
         return fmt::format("{}, {}, {}", is_last, found->text().substr(found->text().find(':')),
                            found->verdict());
       })) {
    CHECK(rank.text ==
          "true, : 0.5 on rank 1, 2.5 on rank 3; 1 tensor differs, between two replicas no "
          "majority shows which rank is wrong");
  }
}

TEST_CASE("the verdict names the ranks that differ from a majority") {
  ReplicaDifference difference{.tensor = "a", .values = {{0, 1}, {1, 2}, {2, 1}}, .wrong = {1}};
  CHECK(difference.verdict() == "rank 1 is wrong: the other replicas agree");
  difference.wrong = {1, 2};
  CHECK(difference.verdict() == "ranks 1, 2 are wrong: the other replicas agree");
  difference.wrong = {};
  CHECK(difference.verdict() == "no majority of the replicas shows which rank is wrong");
}

}  // namespace scaletrain::train
