#include "lib/engine/unit_walk.h"

#include <ATen/core/Tensor.h>

namespace scaletrain::engine {

units::Flow UnitWalk::run(std::size_t unit, parallel::Pass pass,
                          const std::function<units::Flow()>& body) {
  if (hooks_ == nullptr) return body();
  hooks_->enter(unit, pass);
  units::Flow flow = body();
  hooks_->leave(unit, pass);
  if (pass != parallel::Pass::kForward) return flow;
  for (const at::Tensor& tensor : flow) {
    if (!tensor.requires_grad()) continue;
    tensor.register_hook([this, unit](const at::Tensor& /*gradient*/) { reach(unit); });
  }
  return flow;
}

// Runs once for each unit, at the first gradient of its outputs. It leaves the previous unit before
// it enters the next one, as otherwise three units would be unsharded at a time.
void UnitWalk::reach(std::size_t unit) {
  if (unit >= reached_) return;
  const core::LedgerOfThread ledger(ledger_);
  if (reached_ < units_) hooks_->leave(reached_, parallel::Pass::kBackward);
  reached_ = unit;
  hooks_->enter(unit, parallel::Pass::kBackward);
}

void UnitWalk::end_backward() {
  if (hooks_ == nullptr) return;
  if (reached_ < units_) hooks_->leave(reached_, parallel::Pass::kBackward);
  hooks_->end_backward();
}

}  // namespace scaletrain::engine
