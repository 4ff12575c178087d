#include "launcher/commands/prove/proof_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

Proof proof_to_show() {
  Proof proof{.group = "layouts", .name = "tensor-2", .tolerance = 1e-6};
  proof.second.ranks = 2;
  return proof;
}

ProofResult result_to_show(RunEquality equality) {
  return {.verdict = {.equality = equality, .relative = 2e-7, .parting = {}},
          .first_digest = "0123456789abcdef",
          .second_digest = equality == RunEquality::kEqual ? "0123456789abcdef" : "ffff",
          .failure = "",
          .tensor = ""};
}

}  // namespace

TEST_CASE("a row has the verdict and the digests") {
  CHECK(proof_row(proof_to_show(), result_to_show(RunEquality::kEqual), 9) ==
        "tensor-2   equal, digest 0123456789ab\n");
  CHECK(proof_row(proof_to_show(), result_to_show(RunEquality::kWithin), 9) ==
        "tensor-2   within 1e-06 (relative difference 2e-07), digests 0123456789ab and ffff\n");
}

TEST_CASE("a row of runs that part has step, field, values and tensor") {
  ProofResult result = result_to_show(RunEquality::kDifferent);
  result.verdict.parting = {.step = 3, .field = "loss", .first = "1.5", .second = "not finite"};
  CHECK(!result.is_proven());
  CHECK(proof_row(proof_to_show(), result, 8) ==
        "tensor-2  not equal: step 3, loss 1.5 and not finite\n");
  result.tensor = "head.weight";
  CHECK(proof_row(proof_to_show(), result, 8) ==
        "tensor-2  not equal: step 3, loss 1.5 and not finite, tensor head.weight\n");
  const auto json = proof_json(proof_to_show(), result);
  CHECK(json.at("verdict") == "not_equal");
  CHECK(json.at("parting").at("step") == 3);
  CHECK(json.at("parting").at("tensor") == "head.weight");
}

TEST_CASE("kills are named with rank and step") {
  Proof killed = proof_to_show();
  killed.second.kills = {{.step = 4, .rank = 0}, {.step = 6, .rank = 1}};
  CHECK(proof_row(killed, result_to_show(RunEquality::kEqual), 8) ==
        "tensor-2  equal, digest 0123456789ab, killed: rank 0 at step 4, rank 1 at step 6\n");
  CHECK(proof_json(killed, result_to_show(RunEquality::kEqual))["second"]["kills"][1]["step"] == 6);
}

TEST_CASE("a proof that is not applicable is no failure, and one that failed is") {
  Proof proof = proof_to_show();
  proof.not_applicable = "mlp has no layers to divide";
  CHECK(ProofResult().is_proven());
  CHECK(proof_row(proof, {}, 8) == "tensor-2  not applicable: mlp has no layers to divide\n");
  CHECK(proof_json(proof, {}).at("verdict") == "not_applicable");
  ProofResult failed;
  failed.first_digest = "01";
  failed.failure = "it ended with exit code 71";
  CHECK(!failed.is_proven());
  CHECK(proof_row(proof_to_show(), failed, 8) == "tensor-2  failed: it ended with exit code 71\n");
  CHECK(proof_json(proof_to_show(), failed).at("verdict") == "failed");
}

}  // namespace scaletrain::launcher
