// Splits the backward of linear layers for zero-bubble pipeline schedules: the input's gradient is
// computed at once, as the previous stage waits for it, those of weight and bias when the schedule
// asks for them (Qi et al., Zero Bubble Pipeline Parallelism, 2023). The bits equal those of an
// ordinary backward.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/nn/layers/linear.h"
#include "lib/units/linear_product.h"

namespace scaletrain::engine {

class DeferredWeights : public std::enable_shared_from_this<DeferredWeights> {
 public:
  // Deferred weight gradients of one backward.
  class Work {
   public:
    void add(std::function<void()> one) { kept_.push_back(std::move(one)); }
    // Computes them and adds them to the parameters' gradients.
    void run();

   private:
    std::vector<std::function<void()>> kept_;
  };

  // While a scope exists, backward defers weight gradients to `work`; without a scope it computes
  // them at once.
  class Scope {
   public:
    Scope(DeferredWeights& owner, Work& work);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeferredWeights& owner_;
  };

  // Makes `linear` defer its weight gradients. The only hooks of its parameters that run then are
  // post-accumulate hooks (lib/parallel/gradient_hook.h).
  void attach(nn::Linear& linear);

  // Defers `one` to the scope's work, or runs it at once without a scope.
  void take(std::function<void()> one);

 private:
  std::mutex mutex_;      // on a GPU backward runs on a thread of its own
  Work* work_ = nullptr;  // work of the current scope
};

}  // namespace scaletrain::engine
