// FLOPs of a model's training steps, and the share of the device's peak that they reach: model
// FLOPs utilization (MFU), as in Chowdhery et al., PaLM, 2022, appendix B.
#pragma once

#include <optional>
#include <string>

namespace scaletrain::observe {

// Published peak of a device for the recipe's precision.
struct DevicePeak {
  std::string device, precision;
  double flops_per_s = 0;  // 0: not known
};

// `device`: as CUDA calls it, or "cpu", whose peak is not known.
DevicePeak device_peak(const std::string& device, const std::string& precision);

struct ModelSpeed {
  double step_flops = 0;           // forward and backward of a step, all ranks
  double recomputed_flops = 0;     // forward again for activation checkpointing, not in step_flops
  double tflops_per_s = 0;         // of step_flops, a device
  std::optional<double> mfu = {};  // 0..1; nullopt: the peak is not known
};

// "1.25 TFLOP a step, 312 TFLOP/s a device, MFU 31.5 % of 989 TFLOP/s (NVIDIA H100, bf16)"
std::string model_speed_text(const ModelSpeed& speed, const DevicePeak& peak);

}  // namespace scaletrain::observe
