// From windows of tokens to what a language model eats.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/data/loader/batch.h"
#include "lib/input/transfer.h"

namespace scaletrain::input {

struct TokenTensors {
  at::Tensor tokens;   // [count, context] int64
  at::Tensor targets;  // [count, context] int64: what comes next, below 0 where nothing is asked
};

class TokenInput {
 public:
  explicit TokenInput(at::Device device) : device_(device), transfer_(device) {}

  // Queues work only. The batch may be destroyed when it returns (lib/input/transfer.h).
  TokenTensors prepare(const data::Batch& batch) const;

 private:
  at::Device device_;
  Transfer transfer_;
};

}  // namespace scaletrain::input
