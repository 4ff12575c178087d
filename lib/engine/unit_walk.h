// Calls a parallel strategy's hooks around each unit: in forward as units run, in backward as
// gradients reach their outputs.
#pragma once

#include <cstddef>
#include <functional>

#include "lib/core/process/time_ledger.h"
#include "lib/parallel/unit_hooks.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

class UnitWalk {
 public:
  // Walks `units` units; `hooks` may be null, and must outlive this object.
  UnitWalk(parallel::UnitHooks* hooks, std::size_t units) : hooks_(hooks), units_(units) {}
  UnitWalk(const UnitWalk&) = delete;
  UnitWalk& operator=(const UnitWalk&) = delete;

  bool exchanges() const { return hooks_ != nullptr && hooks_->exchanges(); }

  // Runs unit number `unit` by `body` and returns its output. If a backward follows, the gradient
  // of that output later shows that backward has reached the unit.
  units::Flow run(std::size_t unit, parallel::Pass pass, const std::function<units::Flow()>& body);

  // Call before and after a backward through the units that have run.
  void begin_backward() {
    reached_ = units_;
    ledger_ = core::TimeLedger::of_thread();
  }
  void end_backward();

 private:
  void reach(std::size_t unit);

  parallel::UnitHooks* hooks_;
  std::size_t units_;
  std::size_t reached_ = 0;             // unit that backward is at; units_: none yet
  core::TimeLedger* ledger_ = nullptr;  // for the thread of a device's backward
};

}  // namespace scaletrain::engine
