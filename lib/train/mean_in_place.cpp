#include "lib/train/mean_in_place.h"

#include <c10/core/GradMode.h>

namespace scaletrain::train {

MeanInPlace::MeanInPlace(const Run& run, const optim::Mean& mean)
    : own_(values(run.learner.tensors())) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : run.learner.tensors()) tensor.copy_(mean.tensors().at(name));
}

MeanInPlace::~MeanInPlace() { own_.put_back(); }

}  // namespace scaletrain::train
