// What a placement does around the units of a model, called by who runs them.
#pragma once

#include <cstddef>

namespace scaletrain::parallel {

// kForward: a backward follows. kEvaluation: none does.
enum class Pass { kForward, kBackward, kEvaluation };

class UnitHooks {
 public:
  virtual ~UnitHooks() = default;

  // Before unit number `unit` runs, in backward before its first gradient is computed: from here on
  // its parameters are there. A pass takes the units one by one, in backward in falling order, and
  // leaves one before it enters the next; each rank makes the same calls in the same order.
  virtual void enter(std::size_t unit, Pass pass) = 0;
  // After it; in backward the gradients of its parameters are computed.
  virtual void leave(std::size_t unit, Pass pass) = 0;
  // After backward, whichever units it has reached.
  virtual void end_backward() = 0;

  // Whether enter() exchanges something each time, so that all ranks must run as many batches.
  virtual bool exchanges() const = 0;
};

}  // namespace scaletrain::parallel
