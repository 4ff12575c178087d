// A batch with blank values in a recipe's shapes, for computations that depend only on shapes.
#pragma once

#include <optional>
#include <utility>

#include "lib/engine/engine.h"
#include "lib/recipe/recipe.h"
#include "lib/task/task.h"
#include "lib/train/model/context_layout.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Makes a batch on the CPU; `tokens`: length of a sample if the model reads tokens.
task::Example blank_batch(const recipe::Recipe& recipe, const task::Task& task,
                          std::int64_t samples, std::int64_t tokens);

// Micro-batches of a step, all blank.
class BlankBatches : public engine::MicroBatches {
 public:
  // `cut`: split of the sequences, with context parallelism.
  explicit BlankBatches(const Run& run, std::optional<units::TokenCut> cut = {})
      : run_(run), cut_(std::move(cut)) {}
  std::int64_t count() const override { return run_.batch.accumulate; }
  task::Example next() override {
    const task::Example whole =
        blank_batch(run_.recipe, *run_.task, run_.batch.per_device, run_.recipe.data.context);
    return cut_ ? own_tokens(whole, *cut_) : whole;
  }

 private:
  const Run& run_;
  std::optional<units::TokenCut> cut_;
};

}  // namespace scaletrain::train
