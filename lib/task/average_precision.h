// Mean average precision, as scikit-learn's average_precision_score with average="macro".
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::task {

// Returns the mean over the classes of their average precision: the sum of recall gain times
// precision over the scores from high to low; equal scores are one step. `scores` and `shares` are
// [samples, classes] fp32 on the host; a sample has a class if its share is above 0.5. Classes
// without samples are left out, as their recall is undefined; returns 0 if no class has samples,
// and NaN if a score is NaN.
double mean_average_precision(const at::Tensor& scores, const at::Tensor& shares);

}  // namespace scaletrain::task
