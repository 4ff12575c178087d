// Inputs of the last steps, to find out afterwards why a step was anomalous.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "lib/data/loader/batch_stream.h"
#include "lib/engine/engine.h"
#include "lib/task/task.h"
#include "lib/train/model/buffers.h"

namespace scaletrain::train {

// A rank's evidence for an anomalous step.
struct Evidence {
  std::string unit;               // Engine::first_not_finite(); "": none, or nothing was kept
  double loss = 0;                // sum of this rank's losses
  std::vector<std::string> keys;  // of its samples (data::BatchStream::key), at most kMostKeys
  std::int64_t samples = 0;       // of this rank
};

class StepEvidence {
 public:
  static constexpr std::int64_t kMostKeys = 64;

  // Keeps the inputs of the newest `steps` steps; 0: of none.
  explicit StepEvidence(std::size_t steps) : steps_(steps) {}

  bool is_kept() const { return steps_ > 0; }
  // Begins step `step` (from 0); add() and set_loss() belong to it.
  void begin(std::int64_t step);
  void add(const data::Batch& batch);
  void add(const task::Example& example);
  void set_loss(const at::Tensor& loss_sum);

  // Examines step `step`; with `looks` runs its micro-batches forward again, which is collective
  // and leaves `buffers` as they are. Waits for the device.
  Evidence examine(std::int64_t step, bool looks, engine::Engine& engine,
                   const data::BatchStream& batches, const std::vector<at::Tensor>& buffers) const;

 private:
  struct Place {
    std::int64_t epoch = 0, position = 0, count = 0;
  };
  struct Inputs {
    std::int64_t step = 0;
    std::vector<Place> places;
    std::vector<task::Example> examples;
    at::Tensor loss;
  };

  std::size_t steps_;
  std::deque<Inputs> inputs_;  // the newest last
};

}  // namespace scaletrain::train
