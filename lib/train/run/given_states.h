// States that decoupled replicas (lib/parallel/sync/rounds.h) have sent to rank 0 after an outer
// step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace scaletrain::train {

// On rank 0; empty elsewhere, and where nothing was wished.
struct GivenStates {
  std::map<std::string, at::Tensor> tensors = {};  // [replicas, ...], on the host
  // The replicas that have given theirs; others' are rank 0's.
  std::vector<std::int64_t> there = {};

  bool empty() const { return there.empty(); }
};

}  // namespace scaletrain::train
