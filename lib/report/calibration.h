// How far a classifier's probabilities are from what comes true, and the temperature that mends it
// (Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", 2017).
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::report {

inline constexpr int kCalibrationBins = 15;

struct Calibration {
  double error = 0;        // expected calibration error, 0..1
  double temperature = 1;  // what logits are divided by so that the mean loss is the least
  double loss_with = 0;    // mean negative log likelihood, and the error, with it
  double error_with = 0;
};

// The mean of |accuracy - confidence| over kCalibrationBins bins of equal width, each weighed by
// its samples: bin k holds confidences in (k/15, (k+1)/15]. `logits` [samples, classes], `labels`
// [samples] int64, on the host; both as below.
double calibration_error(const at::Tensor& logits, const at::Tensor& labels, double temperature);

// Of one sample at least. The temperature lies in 0.01 to 100: a model without a mistake would take
// the first.
Calibration calibrate(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace scaletrain::report
