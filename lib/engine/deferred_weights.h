// The two halves of a linear layer's backward, apart: the gradient of its input at once, for which
// the stage before waits, and those of weight and bias when a schedule says so (Qi et al., Zero
// Bubble Pipeline Parallelism, 2023). Each has the bits that backward in one piece gives.
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
  // What was kept of one backward.
  class Work {
   public:
    void add(std::function<void()> one) { kept_.push_back(std::move(one)); }
    // Adds it to the gradients of the parameters.
    void run();

   private:
    std::vector<std::function<void()>> kept_;
  };

  // For its lifetime backward keeps gradients of weights in `work`; without one they are computed
  // at once.
  class Scope {
   public:
    Scope(DeferredWeights& owner, Work& work);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeferredWeights& owner_;
  };

  // Makes `linear` multiply so. Of its parameters' hooks only those behind the sum are called then
  // (lib/parallel/gradient_hook.h).
  void attach(nn::Linear& linear);

  // Keeps `one` in the scope's work, or runs it.
  void take(std::function<void()> one);

 private:
  std::mutex mutex_;      // on a device backward has a thread of its own
  Work* work_ = nullptr;  // of the scope
};

}  // namespace scaletrain::engine
