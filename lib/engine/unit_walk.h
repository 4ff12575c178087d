// Calls a placement's hooks around the units of a model, forward as they run and backward as
// gradients reach what they gave.
#pragma once

#include <cstddef>
#include <functional>

#include "lib/parallel/unit_hooks.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

class UnitWalk {
 public:
  // Of so many units; `hooks` may be null, and outlive it.
  UnitWalk(parallel::UnitHooks* hooks, std::size_t units) : hooks_(hooks), units_(units) {}
  UnitWalk(const UnitWalk&) = delete;
  UnitWalk& operator=(const UnitWalk&) = delete;

  bool exchanges() const { return hooks_ != nullptr && hooks_->exchanges(); }

  // What `body` gives, which runs unit number `unit`. Where a backward follows, gradients of what
  // it gives show from then on that backward is at that unit.
  units::Flow run(std::size_t unit, parallel::Pass pass, const std::function<units::Flow()>& body);

  // Before and after a backward through what was run last.
  void begin_backward() { reached_ = units_; }
  void end_backward();

 private:
  void reach(std::size_t unit);

  parallel::UnitHooks* hooks_;
  std::size_t units_;
  std::size_t reached_ = 0;  // by backward; units_: none yet
};

}  // namespace scaletrain::engine
