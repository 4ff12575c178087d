// What stands in for the tensors that operations save for their backward.
//
// Autograd asks the process's engine for hooks whenever an operation saves a tensor: pack gets it,
// unpack gives it to backward. LibTorch has the seam and, in C++, no function to fill it.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>

namespace scaletrain::engine {

// Makes the hooks of one tensor.
using MakeHooks = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

// For its lifetime, what operations of this thread save goes through hooks of `make`; scopes nest,
// and the innermost one counts. Autograd's check that no saved tensor was changed in place is off
// for tensors with hooks.
class SavedTensorsScope {
 public:
  explicit SavedTensorsScope(MakeHooks make);
  ~SavedTensorsScope();
  SavedTensorsScope(const SavedTensorsScope&) = delete;
  SavedTensorsScope& operator=(const SavedTensorsScope&) = delete;

 private:
  MakeHooks make_;
  const MakeHooks* outer_;
};

}  // namespace scaletrain::engine
