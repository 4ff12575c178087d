// Hooks for tensors that operations save for backward (saved_tensors_hooks of PyTorch).
//
// Autograd asks the process's engine for hooks whenever an operation saves a tensor: pack gets the
// tensor, unpack returns it to backward. LibTorch has this interface but no C++ function to set it.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>

namespace scaletrain::engine {

// Makes the hooks for one tensor.
using MakeHooks = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

// While it exists, tensors that this thread's operations save use hooks from `make`; scopes nest,
// and the innermost is used. Autograd does not check tensors with hooks for changes in place.
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
