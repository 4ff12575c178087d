#include "lib/observe/model_speed.h"

#include <doctest/doctest.h>

namespace scaletrain::observe {

TEST_CASE("the speed of a model has its FLOPs, and MFU where the peak is known") {
  const DevicePeak peak = device_peak("NVIDIA A100-SXM4-80GB", "bf16");
  CHECK(peak.flops_per_s == 312e12);
  const ModelSpeed speed{.step_flops = 1.25e15, .tflops_per_s = 78, .mfu = 0.25};
  CHECK(model_speed_text(speed, peak) ==
        "1.25 PFLOP a step, 78 TFLOP/s a device, MFU 25.0 % of 312 TFLOP/s (NVIDIA "
        "A100-SXM4-80GB, bf16)");
}

TEST_CASE("a device that has no published peak has no MFU") {
  CHECK(device_peak("cpu", "fp32").flops_per_s == 0);
  CHECK(device_peak("Tesla V100-SXM2-16GB", "fp32").flops_per_s == 0);
  CHECK(device_peak("NVIDIA H200", "fp64").flops_per_s == 0);
  CHECK(model_speed_text({.step_flops = 950, .tflops_per_s = 0.0123}, device_peak("cpu", "fp32")) ==
        "950 FLOP a step, 12.3 GFLOP/s a device; no MFU: the peak of this CPU is not known");
}

}  // namespace scaletrain::observe
