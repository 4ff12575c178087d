// Turns windows of tokens into input of a language model.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/data/loader/batch.h"
#include "lib/input/transfer.h"

namespace scaletrain::input {

struct TokenTensors {
  at::Tensor tokens;   // [count, context] int64
  at::Tensor targets;  // [count, context] int64: next tokens, below 0 where no loss is computed
};

class TokenInput {
 public:
  explicit TokenInput(at::Device device) : device_(device), transfer_(device) {}

  // The batch may be destroyed after the call. Waits for the device only if it is not pinned.
  TokenTensors prepare(const data::Batch& batch) const;

 private:
  at::Device device_;
  Transfer transfer_;
};

}  // namespace scaletrain::input
