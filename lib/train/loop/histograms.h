// Histograms of weights and gradients on request (/log/histograms), in RUN/histograms.jsonl.
//
// Rank 0 writes those of the parameters that it updates; the recipe's check ensures that these are
// all of them. Another rank writes nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "lib/core/job/worker_env.h"
#include "lib/observe/run_media.h"
#include "lib/train/rules/cadence.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Counts the finite values in 64 equal buckets. Waits for the device.
observe::HistogramRecord histogram_of(const std::string& name, const at::Tensor& values);

class HistogramWriter {
 public:
  HistogramWriter(const Run& run, const core::WorkerEnv& env);

  // Call with step `step` (from 0) when its gradients are unscaled and not clipped, before the
  // update.
  void look(std::int64_t step);

 private:
  void write(std::int64_t step);

  const Run& run_;
  std::optional<Cadence> every_;  // nullopt: this rank writes none
  observe::RunMedia media_;
};

}  // namespace scaletrain::train
