// Advice after running out of memory: the recipe changes that save the most, with numbers.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/train/run/run.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {

// "1.2 MB", of a million bytes each.
std::string megabytes(std::int64_t bytes);

// Bytes of tensors at their highest, as far as a step came.
struct StepMemory {
  std::int64_t parameters = 0, optimizer = 0;  // persistent bytes; parameters include buffers
  std::int64_t gradients = 0;                  // peak of the parameters' gradients in backward
  std::int64_t activations = 0;                // 0: not known
  bool on_device = false;                      // true: GPU memory
  std::size_t units = 0;                       // number of the model's units
};

// Returns the memory of a step of `run`; `first` measured its first step.
StepMemory step_memory(const Run& run, const units::MemoryUse& first);

// "parameters 1.2 MB, gradients 1.2 MB, optimizer 2.4 MB, activations 340.0 MB".
std::string memory_text(const StepMemory& memory);

// Returns one line for each possible change, the one that saves most first: "170.0 MB: "batch":
// {...}". Empty if the recipe has all of them.
std::vector<std::string> memory_advice(const recipe::Recipe& recipe, const recipe::BatchPlan& plan,
                                       const StepMemory& memory);

// Returns the error of a step that ran out of memory, with the advice. `error`: LibTorch's.
core::OutOfMemoryError out_of_memory(const Run& run, const units::MemoryUse& first,
                                     const std::exception& error);

}  // namespace scaletrain::train
