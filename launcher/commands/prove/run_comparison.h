// Compares two training runs step by step, and finds their first difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/runs/run_metrics.h"

namespace scaletrain::launcher {

struct ProvenStep {
  std::int64_t step = 0;
  std::optional<double> loss, grad_norm;  // nullopt: not finite
  std::string order_digest;               // hash of all samples so far
};

struct ProvenRun {
  std::vector<ProvenStep> steps;
  std::string model_digest;  // digest of the last checkpoint
};

// First difference between two runs. `field` is "loss", "grad_norm", "order_digest", "model_digest"
// or "step", where one run has a step that the other one has not.
struct Parting {
  std::int64_t step = 0;
  std::string field, first, second;  // the values as text
};

enum class RunEquality { kEqual, kWithin, kDifferent };

struct RunVerdict {
  RunEquality equality = RunEquality::kEqual;
  double relative = 0;               // largest |a - b| / max(|a|, |b|) of a loss before the parting
  std::optional<Parting> parting{};  // for kDifferent
};

// Collects the logged steps of a run.
ProvenRun proven_run(const RunMetrics& metrics, std::string model_digest);

// Compares losses, gradient norms, data order and the digest of the model. Runs with the same bits
// are equal. Otherwise they are within `tolerance` above 0 if both have the same data order and
// each loss differs by at most this relative difference.
RunVerdict compare_runs(const ProvenRun& first, const ProvenRun& second, double tolerance);

}  // namespace scaletrain::launcher
