#include "lib/observe/device_kinds.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/core/error.h"

namespace scaletrain::observe {

TEST_CASE("every device has its limits and the document that states them") {
  std::set<std::string> names;
  for (const DeviceKind& one : device_kinds()) {
    CAPTURE(one.name);
    CHECK(names.insert(one.name).second);
    CHECK(one.bf16_tflops >= one.tf32_tflops);
    CHECK(one.tf32_tflops > 0);
    CHECK(one.memory_gb > 0);
    CHECK(one.memory_gb_s > 0);
    CHECK(one.watts > 0);
    CHECK(one.link_gb_s > 0);
    CHECK(!one.source.empty());
    CHECK((one.efficiency > 0) == !one.efficiency_source.empty());
    CHECK(one.efficiency < 1);
  }
  CHECK(names.contains("h100"));
  CHECK(!names.contains("cpu"));
}

TEST_CASE("the peak is that of the recipe's precision") {
  const DeviceKind& device = device_kind("a100");
  CHECK(device.peak_flops("bf16") == 312e12);
  CHECK(device.peak_flops("fp8") == 312e12);
  CHECK(device.peak_flops("fp32") == 19.5e12);
  CHECK(!device.peak_flops("fp64"));
}

TEST_CASE("a run's device is found by the name that CUDA gives it") {
  CHECK(device_called("cpu") == "cpu");
  CHECK(device_called("NVIDIA H100 80GB HBM3") == "h100");
  CHECK(device_called("NVIDIA H100 PCIe") == "h100-pcie");
  CHECK(device_called("NVIDIA A100-SXM4-40GB") == "a100-40");
  CHECK(device_called("NVIDIA A100-SXM4-80GB") == "a100");
  CHECK(device_called("NVIDIA L4") == "l4");
  CHECK(device_called("NVIDIA L40") == "");
  CHECK(device_called("NVIDIA GeForce RTX 4090 Laptop GPU") == "");
  CHECK(device_called("Tesla V100-SXM2-16GB") == "");
}

TEST_CASE("an unknown device is answered with the nearest name") {
  try {
    device_kind("h1oo");
    FAIL("it was found");
  } catch (const core::UsageError& error) {
    CHECK(error.found() == "\"h1oo\" is not in the table of devices");
    CHECK(error.remedy().ends_with("; did you mean \"h100\"?"));
    CHECK(error.remedy().starts_with("use one of: cpu, h100, "));
  }
}

}  // namespace scaletrain::observe
