// Calibration of a classifier's probabilities, and temperature scaling (Guo, Pleiss, Sun and
// Weinberger, "On Calibration of Modern Neural Networks", 2017).
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::report {

inline constexpr int kCalibrationBins = 15;

struct Calibration {
  double error = 0;        // expected calibration error, 0..1
  double temperature = 1;  // divides the logits; minimizes the mean loss
  double loss_with = 0;    // mean negative log likelihood at `temperature`
  double error_with = 0;
};

// Expected calibration error at `temperature`: mean of |accuracy - confidence| over
// kCalibrationBins bins of equal width, weighted by their samples; bin k holds confidences in
// (k/15, (k+1)/15]. `logits` [samples, classes], `labels` [samples] int64, both on the CPU.
double calibration_error(const at::Tensor& logits, const at::Tensor& labels, double temperature);

// Fits the temperature, in 0.01 to 100, on at least one sample (`logits`, `labels` as above). A
// model without mistakes gets 0.01.
Calibration calibrate(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace scaletrain::report
