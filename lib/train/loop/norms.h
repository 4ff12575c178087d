// Norms of weights, gradients and updates of each unit, as events "norms" of metrics.jsonl at the
// interval of histograms (/log/histograms).
//
// Each rank sums over the elements that it owns, in any layout; an all-reduce over the ranks that
// hold the model with rank 0 merges the sums, and rank 0 writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/rules/cadence.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class NormWriter {
 public:
  NormWriter(const Run& run, const core::WorkerEnv& env, Reporter& reporter);

  // Call with step `step` (from 0) when its gradients are unscaled and not clipped. Copies the
  // weights if norms are due.
  void look(std::int64_t step);
  // Call when the update was queued. If norms are due it waits for the device, and is collective
  // over the model's ranks.
  void updated();

 private:
  enum Column : std::int64_t { kWeight, kGradient, kUpdate, kColumns };

  // Adds the squares of `values`, elements of the parameter `name`.
  void add(const std::string& name, Column column, const at::Tensor& values);
  // A failure is kept, so that this rank stays in step with the others.
  void try_alone(const std::function<void()>& work);
  void write(const at::Tensor& sums);

  const Run& run_;
  Reporter& reporter_;
  const bool writes_;             // rank 0
  std::optional<Cadence> every_;  // nullopt: no norms, or rank 0 holds another replica
  std::vector<std::string> units_;
  std::map<std::string, std::int64_t> unit_of_;  // index into units_, by parameter

  std::optional<std::int64_t> step_;  // from 1; nullopt: no norms are due
  at::Tensor squares_;                // [units, kColumns]
  std::vector<at::Tensor> before_;    // the parameters that this rank counts
  std::string failure_;               // "": none
};

}  // namespace scaletrain::train
