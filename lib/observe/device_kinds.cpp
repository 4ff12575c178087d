#include "lib/observe/device_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/lookup.h"

namespace scaletrain::observe {
namespace {

constexpr double kTera = 1e12;
constexpr const char* kLlama3 = "torchtitan benchmarks/llama3_h100_202412.md: Llama 3.1 8B, FSDP";
constexpr const char* kTitanA100 = "torchtitan docs/performance.md: Llama 3 8B and 70B on 64 GPUs";

// NVIDIA states peaks with structured sparsity for most products; these are the dense halves.
std::vector<DeviceKind> make_kinds() {
  return {
      {.name = "h100",
       .title = "NVIDIA H100 SXM 80 GB",
       .bf16_tflops = 989.4,
       .tf32_tflops = 494.7,
       .fp32_tflops = 66.9,
       .memory_gb = 80,
       .memory_gb_s = 3350,
       .watts = 700,
       .link_gb_s = 450,
       .source = "NVIDIA H100 Tensor Core GPU Architecture, table 2; H100 datasheet",
       .efficiency = 0.36,
       .efficiency_source = kLlama3},
      {.name = "h100-pcie",
       .title = "NVIDIA H100 PCIe 80 GB",
       .bf16_tflops = 756,
       .tf32_tflops = 378,
       .fp32_tflops = 51.2,
       .memory_gb = 80,
       .memory_gb_s = 2000,
       .watts = 350,
       .link_gb_s = 64,
       .source = "NVIDIA H100 Tensor Core GPU Architecture, table 2; H100 PCIe product brief"},
      {.name = "h200",
       .title = "NVIDIA H200 SXM 141 GB",
       .bf16_tflops = 989.4,
       .tf32_tflops = 494.7,
       .fp32_tflops = 66.9,
       .memory_gb = 141,
       .memory_gb_s = 4800,
       .watts = 700,
       .link_gb_s = 450,
       .source = "NVIDIA H200 Tensor Core GPU datasheet",
       .efficiency = 0.36,
       .efficiency_source = kLlama3},
      {.name = "b200",
       .title = "NVIDIA B200 180 GB",
       .bf16_tflops = 2250,
       .tf32_tflops = 1125,
       .fp32_tflops = 75,
       .memory_gb = 180,
       .memory_gb_s = 7700,
       .watts = 1000,
       .link_gb_s = 900,
       .source = "NVIDIA HGX B200 datasheet, an eighth of the system"},
      {.name = "a100",
       .title = "NVIDIA A100 SXM 80 GB",
       .bf16_tflops = 312,
       .tf32_tflops = 156,
       .fp32_tflops = 19.5,
       .memory_gb = 80,
       .memory_gb_s = 2039,
       .watts = 400,
       .link_gb_s = 300,
       .source = "NVIDIA A100 Tensor Core GPU datasheet",
       .efficiency = 0.52,
       .efficiency_source = kTitanA100},
      {.name = "a100-40",
       .title = "NVIDIA A100 SXM 40 GB",
       .bf16_tflops = 312,
       .tf32_tflops = 156,
       .fp32_tflops = 19.5,
       .memory_gb = 40,
       .memory_gb_s = 1555,
       .watts = 400,
       .link_gb_s = 300,
       .source = "NVIDIA A100 Tensor Core GPU datasheet",
       .efficiency = 0.52,
       .efficiency_source = kTitanA100},
      {.name = "l40s",
       .title = "NVIDIA L40S 48 GB",
       .bf16_tflops = 362,
       .tf32_tflops = 183,
       .fp32_tflops = 91.6,
       .memory_gb = 48,
       .memory_gb_s = 864,
       .watts = 350,
       .link_gb_s = 32,
       .source = "NVIDIA L40S datasheet"},
      {.name = "l4",
       .title = "NVIDIA L4 24 GB",
       .bf16_tflops = 121,
       .tf32_tflops = 60,
       .fp32_tflops = 30.3,
       .memory_gb = 24,
       .memory_gb_s = 300,
       .watts = 72,
       .link_gb_s = 32,
       .source = "NVIDIA L4 datasheet"},
      {.name = "rtx4090",
       .title = "NVIDIA GeForce RTX 4090 24 GB",
       .bf16_tflops = 165.2,
       .tf32_tflops = 82.6,
       .fp32_tflops = 82.6,
       .memory_gb = 24,
       .memory_gb_s = 1008,
       .watts = 450,
       .link_gb_s = 32,
       .source = "NVIDIA Ada GPU Architecture, appendix A"},
  };
}

}  // namespace

std::optional<double> DeviceKind::peak_flops(const std::string& precision) const {
  if (precision == "fp32") return fp32_tflops * kTera;
  if (precision == "tf32") return tf32_tflops * kTera;
  // Few products of a step are 8-bit: with fp8 the peak of bf16 is the safe figure.
  if (precision == "bf16" || precision == "fp16" || precision == "fp8") return bf16_tflops * kTera;
  return std::nullopt;
}

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = make_kinds();
  return kinds;
}

std::string device_called(const std::string& cuda_name) {
  // As cudaGetDeviceProperties names them; the first that is found counts.
  constexpr std::pair<std::string_view, const char*> kCudaNames[] = {{"H100 PCIe", "h100-pcie"},
                                                                     {"H100 80GB", "h100"},
                                                                     {"H200", "h200"},
                                                                     {"B200", "b200"},
                                                                     {"A100-SXM4-40GB", "a100-40"},
                                                                     {"A100-PCIE-40GB", "a100-40"},
                                                                     {"A100", "a100"},
                                                                     {"L40S", "l40s"},
                                                                     {"RTX 4090", "rtx4090"}};
  if (cuda_name == "cpu") return cuda_name;
  if (cuda_name == "NVIDIA L4") return "l4";  // not the L40
  for (const auto& [part, name] : kCudaNames) {
    if (cuda_name.find(part) != std::string::npos && !cuda_name.ends_with("Laptop GPU"))
      return name;
  }
  return "";
}

const DeviceKind& device_kind(const std::string& name) {
  std::vector<std::string> names{"cpu"};
  for (const DeviceKind& one : device_kinds()) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  const std::string meant = core::did_you_mean(name, names);
  throw core::UsageError(
      "--device", fmt::format("\"{}\" is not in the table of devices", name),
      fmt::format("use one of: {}{}{}", fmt::join(names, ", "), meant.empty() ? "" : "; ", meant));
}

}  // namespace scaletrain::observe
