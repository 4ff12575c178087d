// A batch of nothing, in the shapes of a recipe's: for what depends on shapes alone.
#pragma once

#include "lib/engine/engine.h"
#include "lib/recipe/recipe.h"
#include "lib/task/task.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// `tokens` of each sample, where the model reads tokens. On the CPU.
task::Example blank_batch(const recipe::Recipe& recipe, const task::Task& task,
                          std::int64_t samples, std::int64_t tokens);

// A step's micro-batches of these.
class BlankBatches : public engine::MicroBatches {
 public:
  explicit BlankBatches(const Run& run) : run_(run) {}
  std::int64_t count() const override { return run_.batch.accumulate; }
  task::Example next() override {
    return blank_batch(run_.recipe, *run_.task, run_.batch.per_device, run_.recipe.data.context);
  }

 private:
  const Run& run_;
};

}  // namespace scaletrain::train
