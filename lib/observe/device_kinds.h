// Published limits of devices, for `scaletrain plan` and MFU.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace scaletrain::observe {

struct DeviceKind {
  std::string name;   // as --device takes it
  std::string title;  // product name
  // Peak of dense matrix products in TFLOP/s: bf16, and fp32 inputs with the recipe's precision
  // "tf32" and "fp32".
  double bf16_tflops = 0, tf32_tflops = 0, fp32_tflops = 0;
  double memory_gb = 0;    // of 1e9 bytes
  double memory_gb_s = 0;  // memory bandwidth
  double watts = 0;        // board power limit
  double link_gb_s = 0;    // to the other devices of a node, in one direction
  std::string source;      // document of these figures
  // Share of the bf16 peak that published training runs reach, and where; 0: none is known.
  double efficiency = 0;
  std::string efficiency_source{};

  // Peak in FLOP/s for a recipe's precision; nullopt if the device lacks it.
  std::optional<double> peak_flops(const std::string& precision) const;
};

// All GPUs of the table; "cpu" is this machine and is not among them.
const std::vector<DeviceKind>& device_kinds();

// Name of the device that CUDA calls `cuda_name`, such as "NVIDIA H100 80GB HBM3"; "cpu" for "cpu",
// and "" for one that is not in the table.
std::string device_called(const std::string& cuda_name);

// Throws core::UsageError with the nearest name.
const DeviceKind& device_kind(const std::string& name);

}  // namespace scaletrain::observe
