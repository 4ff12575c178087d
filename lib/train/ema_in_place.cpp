#include "lib/train/ema_in_place.h"

#include <c10/core/GradMode.h>

namespace scaletrain::train {

EmaInPlace::EmaInPlace(const Run& run) : own_(values(run.learner.tensors())) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : run.learner.tensors()) {
    tensor.copy_(run.ema->tensors().at(name));
  }
}

EmaInPlace::~EmaInPlace() { own_.put_back(); }

}  // namespace scaletrain::train
