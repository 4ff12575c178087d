#include "lib/train/simulate/machine_speed.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "lib/core/clock.h"

namespace scaletrain::train {
namespace {

// Shortest time of a few runs, in seconds; others may use the machine too.
double shortest(const std::function<void()>& run) {
  constexpr int kRuns = 5;
  double seconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRuns; ++i) {
    const core::SteadyTime start = core::now();
    run();
    seconds = std::min(seconds, core::seconds_since(start));
  }
  return seconds;
}

}  // namespace

MachineSpeed measure_machine(at::ScalarType type) {
  constexpr std::int64_t kSize = 512, kCopied = 4 << 20;  // rows; floats
  const at::NoGradGuard no_grad;
  const at::Tensor a = at::ones({kSize, kSize}, type), b = at::ones({kSize, kSize}, type);
  const at::Tensor from = at::ones({kCopied}), to = at::empty({kCopied});
  const double product_s = shortest([&] { at::mm(a, b); });
  const double copy_s = shortest([&] { to.copy_(from); });
  constexpr double kFlops = 2.0 * kSize * kSize * kSize;
  constexpr double kBytes = 2.0 * kCopied * sizeof(float);
  return {.flops_per_s = kFlops / product_s, .bytes_per_s = kBytes / copy_s};
}

}  // namespace scaletrain::train
