#include "lib/report/calibration.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace scaletrain::report {
namespace {

constexpr std::int64_t kRows = 4096;  // rows converted to double at a time
constexpr double kLeast = 0.01, kMost = 100;

void for_parts(const at::Tensor& logits, const at::Tensor& labels,
               const std::function<void(const at::Tensor& logits, const at::Tensor& labels)>& use) {
  for (std::int64_t begin = 0; begin < logits.size(0); begin += kRows) {
    const std::int64_t count = std::min(kRows, logits.size(0) - begin);
    use(logits.narrow(0, begin, count).to(at::kDouble), labels.narrow(0, begin, count));
  }
}

// Mean loss as a function of the inverse temperature: value and two derivatives.
struct Curve {
  double loss = 0, slope = 0, bend = 0;
};

Curve curve_at(const at::Tensor& logits, const at::Tensor& labels, double inverse) {
  Curve sum;
  for_parts(logits, labels, [&](const at::Tensor& part, const at::Tensor& own) {
    const at::Tensor log_shares = (part * inverse).log_softmax(1);
    const at::Tensor shares = log_shares.exp();
    const at::Tensor mean = (shares * part).sum(1);
    const at::Tensor index = own.unsqueeze(1);
    sum.loss -= log_shares.gather(1, index).sum().item<double>();
    sum.slope += (mean - part.gather(1, index).squeeze(1)).sum().item<double>();
    sum.bend += ((shares * part * part).sum(1) - mean * mean).sum().item<double>();
  });
  const auto count = static_cast<double>(logits.size(0));
  return {.loss = sum.loss / count, .slope = sum.slope / count, .bend = sum.bend / count};
}

// The loss is convex in the inverse temperature: takes Newton steps, and bisects (geometrically) if
// a step leaves the bracket.
double best_inverse(const at::Tensor& logits, const at::Tensor& labels) {
  constexpr int kMostSteps = 100;
  constexpr double kClose = 1e-12;
  double low = 1 / kMost, high = 1 / kLeast, at = 1;
  for (int step = 0; step < kMostSteps && high - low > kClose * at; ++step) {
    const Curve curve = curve_at(logits, labels, at);
    if (curve.slope == 0) break;
    (curve.slope > 0 ? high : low) = at;
    double next = at - curve.slope / curve.bend;
    if (!(next > low && next < high)) next = std::sqrt(low * high);
    const bool is_close = std::abs(next - at) <= kClose * at;
    at = next;
    if (is_close) break;
  }
  return at;
}

}  // namespace

double calibration_error(const at::Tensor& logits, const at::Tensor& labels, double temperature) {
  const auto doubles = at::TensorOptions(at::kDouble);
  const at::Tensor confidence = at::zeros({kCalibrationBins}, doubles);
  const at::Tensor right = at::zeros({kCalibrationBins}, doubles);
  for_parts(logits, labels, [&](const at::Tensor& part, const at::Tensor& own) {
    const auto [best, classes] = (part / temperature).softmax(1).max(1);
    const at::Tensor bins =
        (best * kCalibrationBins).ceil().sub(1).clamp(0, kCalibrationBins - 1).to(at::kLong);
    confidence.index_add_(0, bins, best);
    right.index_add_(0, bins, classes.eq(own).to(at::kDouble));
  });
  return (right - confidence).abs().sum().item<double>() / static_cast<double>(logits.size(0));
}

Calibration calibrate(const at::Tensor& logits, const at::Tensor& labels) {
  const double inverse = best_inverse(logits, labels);
  const double temperature = 1 / inverse;
  return {.error = calibration_error(logits, labels, 1),
          .temperature = temperature,
          .loss_with = curve_at(logits, labels, inverse).loss,
          .error_with = calibration_error(logits, labels, temperature)};
}

}  // namespace scaletrain::report
