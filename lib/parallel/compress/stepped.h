// State that a step changes, with rollback if the step is skipped.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace scaletrain::parallel {

struct Stepped {
  at::Tensor now;   // before the step
  at::Tensor next;  // after it

  static Stepped zeros(at::IntArrayRef shape, at::Device device) {
    const auto options = at::TensorOptions(at::kFloat).device(device);
    return {at::zeros(shape, options), at::zeros(shape, options)};
  }
  // Ends the step: keeps `next` if `found_inf`, 0-dim, is 0, and rolls back to `now` otherwise.
  void end_step(const at::Tensor& found_inf) const {
    now.copy_(at::where(found_inf.ne(0), now, next));
  }
};

}  // namespace scaletrain::parallel
