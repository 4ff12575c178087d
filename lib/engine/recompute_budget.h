// Memory budget of activation checkpointing: measures the bytes that each unit saves for backward
// and the time of its forward, and recomputes first the units that save most bytes per second.
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
  std::int64_t saved_bytes = 0;  // bytes of activations saved for backward
  std::int64_t input_bytes = 0;  // bytes kept of a recomputed unit
  double seconds = 0;            // time of its forward
};

// Peak bytes of saved activations if the units in `again` are recomputed: after forward all units'
// kept bytes are in memory, plus all activations of the unit that backward recomputes.
std::int64_t peak_bytes(const std::vector<UnitCost>& costs, const std::vector<bool>& again);

// Chooses the units to recompute so that peak_bytes() is at most `budget_bytes`, or as close to it
// as possible. Never chooses the last unit.
std::vector<bool> within_budget(const std::vector<UnitCost>& costs, std::int64_t budget_bytes);

// Counts bytes that operations save for backward, each storage once, without `lasting` tensors. The
// measured forward cannot be followed by a backward.
class SavedBytes {
 public:
  explicit SavedBytes(const std::vector<at::Tensor>& lasting);

  // Hooks for a SavedTensorsScope; this object must outlive the scope.
  MakeHooks hooks();
  // Returns the bytes saved since the last call and releases the saved tensors.
  std::int64_t take();

 private:
  class Hooks;
  void add(const at::Tensor& tensor);

  std::unordered_map<const void*, at::Tensor> seen_;  // keyed by storage; kept until take()
  std::vector<const void*> lasting_;                  // sorted
};

// Bytes of all tensors together.
std::int64_t bytes_of(const units::Flow& flow);

}  // namespace scaletrain::engine
