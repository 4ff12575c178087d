#include "lib/train/state/mean_in_place.h"

#include <c10/core/GradMode.h>

#include "lib/core/error.h"
#include "lib/train/run/held.h"

namespace scaletrain::train {

MeanInPlace::MeanInPlace(Run& run, const optim::Mean& mean)
    : run_(run), own_(values(held_tensors(run))) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : held_tensors(run)) tensor.copy_(mean.tensors().at(name));
  run_.engine->weights_changed();
}

MeanInPlace::~MeanInPlace() {
  own_.put_back();
  try {
    run_.engine->weights_changed();
  } catch (const core::StoppedError&) {  // a peer is gone, which the next exchange says too
  }
}

}  // namespace scaletrain::train
