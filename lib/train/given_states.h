// What replicas that are apart (lib/parallel/sync/rounds.h) have given to rank 0, behind an
// exchange.
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
