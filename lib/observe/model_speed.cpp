#include "lib/observe/model_speed.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "lib/observe/device_kinds.h"

namespace scaletrain::observe {
namespace {

// "1.25 TFLOP"
std::string flops_text(double flops) {
  constexpr std::array kUnits{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  std::size_t unit = 0;
  for (; flops >= 1000 && unit + 1 < kUnits.size(); ++unit) flops /= 1000;
  return fmt::format("{:.3g} {}", flops, kUnits.at(unit));
}

}  // namespace

DevicePeak device_peak(const std::string& device, const std::string& precision) {
  const std::string name = device_called(device);
  DevicePeak peak{.device = device, .precision = precision};
  for (const DeviceKind& one : device_kinds()) {
    if (one.name == name) peak.flops_per_s = one.peak_flops(precision).value_or(0);
  }
  return peak;
}

std::string model_speed_text(const ModelSpeed& speed, const DevicePeak& peak) {
  constexpr double kTera = 1e12;
  const std::string text = fmt::format("{} a step, {}/s a device", flops_text(speed.step_flops),
                                       flops_text(speed.tflops_per_s * kTera));
  if (!speed.mfu) {
    return fmt::format("{}; no MFU: the peak of {} is not known", text,
                       peak.device == "cpu" ? "this CPU" : peak.device);
  }
  return fmt::format("{}, MFU {:.1f} % of {}/s ({}, {})", text, 100 * *speed.mfu,
                     flops_text(peak.flops_per_s), peak.device, peak.precision);
}

}  // namespace scaletrain::observe
