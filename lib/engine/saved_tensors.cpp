#include "lib/engine/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>

#include <utility>

namespace scaletrain::engine {
namespace {

thread_local const MakeHooks* innermost = nullptr;

// LibTorch's engine, with hooks while a scope exists on the thread.
class HookedEngine : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return innermost == nullptr ? nullptr : (*innermost)();
  }
};

// Never destroyed: its threads wait for work until the process ends, as LibTorch's own do.
torch::autograd::Engine& hooked_engine() {
  static auto* const engine = new HookedEngine;
  return *engine;
}

}  // namespace

SavedTensorsScope::SavedTensorsScope(MakeHooks make) : make_(std::move(make)), outer_(innermost) {
  torch::autograd::set_default_engine_stub(hooked_engine);  // stores the same value each time
  innermost = &make_;
}

SavedTensorsScope::~SavedTensorsScope() { innermost = outer_; }

}  // namespace scaletrain::engine
