#include "lib/units/host_update.h"

namespace scaletrain::units {

void HostUpdate::begin() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void HostUpdate::end(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    --under_way_;
    if (error) error_ = error;
  }
  changed_.notify_all();
}

void HostUpdate::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return under_way_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace scaletrain::units
