#include "launcher/commands/prove/proofs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/core/error.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

constexpr std::int64_t kProofSteps = 8;

constexpr const char* kGptToProve = R"({
    "model": {"name": "gpt2", "vocab_size": 512, "positions": 64, "dim": 64, "depth": 4, "heads": 4,
              "dropout": 0.0},
    "data": {"train": {"tokens": "a.bin"}}, "batch": {"global": 16, "per_device": 8},
    "optimizer": {"name": "adamw", "lr": 0.1}, "steps": 10})";
constexpr const char* kResnetToProve = R"({
    "model": {"name": "resnet18", "num_classes": 10}, "precision": "bf16",
    "data": {"train": {"shards": "a.tar"}, "image_size": 64}, "batch": {"per_device": 32},
    "optimizer": {"name": "sgd", "lr": 0.1}, "steps": 10})";

std::vector<Proof> proofs_of(const char* text, int most_ranks = 4, std::uint64_t seed = 1,
                             const std::vector<std::string>& overrides = {}) {
  const recipe::Recipe recipe = recipe::parse_recipe(text, "r.json", overrides);
  return proofs(shorten(recipe, kProofSteps, most_ranks), kProofSteps, most_ranks, seed);
}

Proof proof_named(const std::vector<Proof>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Proof::name);
  REQUIRE_MESSAGE(found != all.end(), name);
  return *found;
}

}  // namespace

TEST_CASE("every proof has a name of its own and runs that can start, or a reason") {
  for (const char* const text : {kGptToProve, kResnetToProve}) {
    std::set<std::string> names, groups;
    for (const Proof& proof : proofs_of(text)) {
      CAPTURE(proof.name);
      CHECK(names.insert(proof.name).second);
      groups.insert(proof.group);
      if (!proof.not_applicable.empty()) continue;
      CHECK(refusal_of(proof.first.recipe, proof.first.ranks) == "");
      CHECK(refusal_of(proof.second.recipe, proof.second.ranks) == "");
    }
    CHECK(groups == std::set<std::string>{"same", "killed", "ranks", "accumulation", "layouts",
                                          "techniques", "loader"});
  }
}

TEST_CASE("a transformer is proven in every layout that it may have") {
  const std::vector<Proof> all = proofs_of(kGptToProve);
  for (const char* const name :
       {"same", "killed", "ranks-2", "ranks-4", "accumulation", "shard-2-optimizer", "tensor-2",
        "pipeline-2-zero_bubble", "context-2", "pipeline-2-tensor-2", "recompute", "compress-bf16",
        "loader-threads-3"}) {
    CHECK(proof_named(all, name).not_applicable == "");
  }
  CHECK(proof_named(all, "expert-2").not_applicable != "");
}

TEST_CASE("runs that must be the same have no tolerance") {
  const std::vector<Proof> all = proofs_of(kGptToProve);
  for (const char* const name : {"same", "killed", "recompute", "offload-activations",
                                 "loader-threads-1", "loader-threads-3"}) {
    CHECK(proof_named(all, name).tolerance == 0);
  }
  CHECK(proof_named(all, "ranks-2").tolerance == 1e-6);
  CHECK(proof_named(all, "tensor-2").tolerance == 1e-6);
}

TEST_CASE("batch statistics depend on the micro-batch, and multiply rounding") {
  const std::vector<Proof> all = proofs_of(kResnetToProve);
  CHECK(proof_named(all, "accumulation").not_applicable ==
        "batch statistics depend on the micro-batch");
  CHECK(proof_named(all, "same").first.recipe.precision.name == "bf16");
  CHECK(proof_named(all, "ranks-2").first.recipe.precision.name == "fp64");
  CHECK(proof_named(all, "ranks-2").second.recipe.precision.name == "fp64");
  CHECK(proof_named(all, "compress-bf16").not_applicable != "");
}

TEST_CASE("the micro-batch is the same in all runs but those of accumulation") {
  for (const Proof& proof : proofs_of(kGptToProve)) {
    CAPTURE(proof.name);
    CHECK(*proof.second.recipe.batch.global == 16);
    CHECK(proof.first.recipe.batch.per_device == 4);
    const std::int64_t expected = proof.name == "accumulation" ? 16 : 4;
    CHECK(proof.second.recipe.batch.per_device == expected);
  }
}

TEST_CASE("dropout is drawn for each micro-batch") {
  CHECK(proof_named(proofs_of(kGptToProve, 4, 1, {"model.dropout=0.1"}), "accumulation")
            .not_applicable == "dropout is drawn for each micro-batch");
}

TEST_CASE("asynchronous averaging proves nothing that its timing changes") {
  for (const char* const sync : {"sync=diloco", "sync=async"}) {
    const std::vector<Proof> all = proofs_of(kGptToProve, 4, 1, {sync});
    const bool is_async = std::string(sync) == "sync=async";
    CAPTURE(sync);
    CHECK(proof_named(all, "killed").not_applicable.empty() == !is_async);
    CHECK(proof_named(all, "ranks-2").not_applicable != "");
    CHECK(proof_named(all, "tensor-2").not_applicable != "");
  }
}

TEST_CASE("kills come after the first checkpoint, in ascending order, as the seed draws them") {
  std::set<std::int64_t> steps;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Proof killed = proof_named(proofs_of(kGptToProve, 2, seed), "killed");
    REQUIRE(killed.second.kills.size() == 2);
    std::int64_t last = 0;
    for (const PlannedKill& kill : killed.second.kills) {
      CHECK(kill.step > 2);
      CHECK(kill.step <= kProofSteps);
      CHECK(kill.step >= last);
      CHECK(kill.rank >= 0);
      CHECK(kill.rank < killed.second.ranks);
      last = kill.step;
      steps.insert(kill.step);
    }
  }
  CHECK(steps.size() > 2);
}

TEST_CASE("proofs that need more ranks than there are say so") {
  const std::vector<Proof> all = proofs_of(kGptToProve, 2);
  CHECK(proof_named(all, "ranks-2").not_applicable == "");
  CHECK(proof_named(all, "ranks-4").not_applicable == "needs 4 ranks, and there are 2: --nproc");
  CHECK(proof_named(proofs_of(kGptToProve, 1), "compress-bf16").not_applicable ==
        "one rank sends no gradients");
}

TEST_CASE("proofs are selected by group or name") {
  const std::vector<Proof> all = proofs_of(kGptToProve);
  CHECK(select_proofs(all, {}).size() == all.size());
  CHECK(select_proofs(all, {"loader"}).size() == 2);
  const std::vector<Proof> some = select_proofs(all, {"tensor-2", "same"});
  REQUIRE(some.size() == 2);
  CHECK(some[0].name == "same");
  CHECK_THROWS_AS(select_proofs(all, {"tensor-3"}), core::UsageError);
}

}  // namespace scaletrain::launcher
