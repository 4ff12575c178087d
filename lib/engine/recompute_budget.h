// Which units run again so that activations keep to a budget: what each unit saves for backward and
// how long its forward takes is measured, and those go first that give the most bytes a second.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/engine/saved_tensors.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

struct UnitCost {
  std::string name;
  std::int64_t saved_bytes = 0;  // of its activations that backward needs
  std::int64_t input_bytes = 0;  // what stays of it when it runs again
  double seconds = 0;            // of its forward
};

// The most bytes that saved activations take at any time, given which units run again: all of them
// lie there when forward has ended, and one that runs again is whole while backward is at it.
std::int64_t peak_bytes(const std::vector<UnitCost>& costs, const std::vector<bool>& again);

// For each unit whether it runs again, so that peak_bytes() is within `budget_bytes`; as near as it
// gets where that cannot be. The last unit never is one.
std::vector<bool> within_budget(const std::vector<UnitCost>& costs, std::int64_t budget_bytes);

// The bytes of what operations save for their backward, each block of memory once, without those of
// `lasting` tensors. No backward can follow.
class SavedBytes {
 public:
  explicit SavedBytes(const std::vector<at::Tensor>& lasting);

  // Hooks for a SavedTensorsScope, which this outlives.
  MakeHooks hooks();
  // Of what was saved since the last call, whose memory it gives back.
  std::int64_t take();

 private:
  class Hooks;
  void add(const at::Tensor& tensor);

  std::unordered_map<const void*, at::Tensor> seen_;  // by its memory, which is kept till take()
  std::vector<const void*> lasting_;                  // sorted
};

// Of all tensors together.
std::int64_t bytes_of(const units::Flow& flow);

}  // namespace scaletrain::engine
