#include "lib/task/average_precision.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace scaletrain::task {
namespace {

struct Ranked {
  float score = 0;
  bool is_there = false;
};

// nullopt where no sample has the class. Puts `samples` in order.
std::optional<double> average_precision(std::vector<Ranked>& samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Ranked& one, const Ranked& other) { return one.score > other.score; });
  std::int64_t found = 0;
  double sum = 0;
  for (auto step = samples.begin(); step != samples.end();) {
    const auto end = std::find_if(
        step, samples.end(), [&](const Ranked& sample) { return sample.score != step->score; });
    const std::int64_t gain = std::count_if(step, end, [](const Ranked& s) { return s.is_there; });
    found += gain;
    sum += static_cast<double>(gain) * static_cast<double>(found) /
           static_cast<double>(end - samples.begin());
    step = end;
  }
  if (found == 0) return std::nullopt;
  return sum / static_cast<double>(found);
}

}  // namespace

double mean_average_precision(const at::Tensor& scores, const at::Tensor& shares) {
  double sum = 0;
  std::int64_t classes = 0;
  std::vector<Ranked> samples(static_cast<std::size_t>(scores.size(0)));
  for (std::int64_t i = 0; i < scores.size(1); ++i) {
    const at::Tensor its_scores = scores.select(1, i).contiguous();
    const at::Tensor its_shares = shares.select(1, i).contiguous();
    const auto* const score = its_scores.const_data_ptr<float>();
    const auto* const share = its_shares.const_data_ptr<float>();
    for (std::size_t sample = 0; sample < samples.size(); ++sample) {
      if (std::isnan(score[sample])) return std::numeric_limits<double>::quiet_NaN();
      samples[sample] = {score[sample], share[sample] > 0.5F};
    }
    const std::optional<double> precision = average_precision(samples);
    if (!precision) continue;
    sum += *precision;
    ++classes;
  }
  return classes == 0 ? 0 : sum / static_cast<double>(classes);
}

}  // namespace scaletrain::task
