// How well scores order samples: average precision, as scikit-learn's average_precision_score.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::task {

// The mean over the classes (average="macro") of the average precision of each: the sum over its
// scores from high to low of the gain of recall times the precision there, where equal scores are
// one step. scores [samples, classes] fp32, shares [samples, classes] fp32, a class being there
// where its share is above 0.5; both on the host. A class that no sample has is left out, as its
// recall is not defined; 0 where that is every class. Not a number where a score is not.
double mean_average_precision(const at::Tensor& scores, const at::Tensor& shares);

}  // namespace scaletrain::task
