// Result of a proof as a row of text and as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/commands/prove/proofs.h"
#include "launcher/commands/prove/run_comparison.h"

namespace scaletrain::launcher {

struct ProofResult {
  RunVerdict verdict;
  std::string first_digest, second_digest;  // model digests; "": the run failed or did not start
  std::string failure;                      // reason why a run did not end as planned; "": both did
  std::string tensor;  // one that differs most between the last checkpoints; "": none was sought

  bool is_proven() const { return failure.empty() && verdict.equality != RunEquality::kDifferent; }
};

// "tensor-2   within 1e-06 (relative difference 7.4e-08)  3f0c9ad2 != 81b02c4e", with a line end.
std::string proof_row(const Proof& proof, const ProofResult& result, std::size_t name_width);

// {"group", "name", "verdict", "tolerance", "first", "second", ...}. "verdict" is "equal",
// "within", "not_equal", "failed" or "not_applicable"; "first" and "second" have "ranks" and
// "digest".
nlohmann::ordered_json proof_json(const Proof& proof, const ProofResult& result);

}  // namespace scaletrain::launcher
