// Mixed precision by autocast: matrix products and convolutions in a lower precision, sums and
// losses in fp32.
#pragma once

#include <ATen/autocast_mode.h>

#include <functional>

#include "lib/precision/precision.h"

namespace scaletrain::precision {

// Enables autocast for a scope. The outermost scope drops the cached casts of the parameters at its
// end, so that the next forward sees the optimizer's update.
class AutocastScope {
 public:
  AutocastScope(at::DeviceType device, at::ScalarType type)
      : device_(device),
        was_enabled_(at::autocast::is_autocast_enabled(device)),
        old_type_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, type);
    at::autocast::increment_nesting();
  }
  ~AutocastScope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_dtype(device_, old_type_);
    at::autocast::set_autocast_enabled(device_, was_enabled_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType old_type_;
};

// Precision that runs forward and loss under autocast to one dtype.
class Autocast : public Precision {
 public:
  Autocast(at::DeviceType device, at::ScalarType type) : device_(device), type_(type) {}

  at::Tensor forward(const std::function<at::Tensor()>& body) override {
    const AutocastScope scope(device_, type_);
    return body();
  }

 private:
  at::DeviceType device_;
  at::ScalarType type_;
};

}  // namespace scaletrain::precision
