#include "lib/engine/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>

#include <utility>

namespace scaletrain::engine {
namespace {

thread_local const MakeHooks* innermost = nullptr;

// LibTorch's engine with hooks where a scope asks for some.
class HookedEngine : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return innermost == nullptr ? nullptr : (*innermost)();
  }
};

// Never destroyed: its threads wait for work until the process ends, as those of LibTorch's do.
torch::autograd::Engine& hooked_engine() {
  static auto* const engine = new HookedEngine;
  return *engine;
}

}  // namespace

SavedTensorsScope::SavedTensorsScope(MakeHooks make) : make_(std::move(make)), outer_(innermost) {
  torch::autograd::set_default_engine_stub(hooked_engine);  // one store, of the same each time
  innermost = &make_;
}

SavedTensorsScope::~SavedTensorsScope() { innermost = outer_; }

}  // namespace scaletrain::engine
