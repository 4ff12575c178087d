// States that decoupled replicas (lib/local_sgd/diloco_client.h) have sent to rank 0 after an outer
// step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace scaletrain::train {

// States of decoupled replicas that rank 0 received. Empty on other ranks, and if none were
// requested.
struct GivenStates {
  std::map<std::string, at::Tensor> tensors = {};  // [replicas, ...], on the host
  // Replicas that sent a state. Rows of the others are copies of rank 0's replica.
  std::vector<std::int64_t> there = {};

  bool empty() const { return there.empty(); }
};

}  // namespace scaletrain::train
