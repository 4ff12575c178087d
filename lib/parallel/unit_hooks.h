// Hooks that run before and after each unit of a model, such as unshard and reshard.
#pragma once

#include <cstddef>

namespace scaletrain::parallel {

// kForward: a backward follows. kEvaluation: none does.
enum class Pass { kForward, kBackward, kEvaluation };

class UnitHooks {
 public:
  virtual ~UnitHooks() = default;

  // Call before unit number `unit` runs, in backward before its first gradient: makes its
  // parameters available. A pass enters units one by one, in backward in descending order, and
  // leaves each before the next; all ranks make the same calls in the same order.
  virtual void enter(std::size_t unit, Pass pass) = 0;
  // Call after the unit; in backward the gradients of its parameters are ready.
  virtual void leave(std::size_t unit, Pass pass) = 0;
  // Call after backward, also if it has not reached all units.
  virtual void end_backward() = 0;

  // True if enter() communicates, so that all ranks must run the same number of batches.
  virtual bool exchanges() const = 0;
};

}  // namespace scaletrain::parallel
