#include "launcher/devices/device_warnings.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using Texts = std::vector<std::string>;

observe::DeviceSample sample_of(observe::GpuSample gpu, observe::HostSample host = {}) {
  gpu.index = 2;
  gpu.uuid = "GPU-1";
  return {.node_name = "a", .host = host, .gpus = {std::move(gpu)}};
}

TEST_CASE("a lost GPU and uncorrected ECC errors are warned about once") {
  DeviceWarnings warnings;
  CHECK(warnings.look(sample_of({.ecc_corrected = 100, .ecc_uncorrected = 0})).empty());
  CHECK(
      warnings.look(sample_of({.lost = true})) ==
      Texts{"GPU 2 of a (GPU-1): the driver no longer reaches it: look for Xid in dmesg; it needs "
            "a reset or a reboot of the node"});
  CHECK(warnings.look(sample_of({.lost = true})).empty());
  CHECK(warnings.look(sample_of({.ecc_uncorrected = 2})) ==
        Texts{"GPU 2 of a (GPU-1): 2 uncorrected ECC errors in this run: its results may be wrong; "
              "exclude it, or reset it with nvidia-smi -r"});
  CHECK(warnings.look(sample_of({.ecc_uncorrected = 3})).empty());
}

TEST_CASE("reduced clocks are warned about after some samples, a power cap is usual") {
  DeviceWarnings warnings;
  const observe::DeviceSample hot =
      sample_of({.throttled = {"power cap", "thermal slowdown (software)"}});
  for (int i = 1; i < DeviceWarnings::kPatience; ++i) CHECK(warnings.look(hot).empty());
  CHECK(warnings.look(hot) ==
        Texts{"GPU 2 of a (GPU-1): its clocks are reduced by thermal slowdown (software): it is "
              "slower until it cools down: check its cooling, or limit its power with nvidia-smi "
              "-pl"});
  CHECK(warnings.look(hot).empty());
}

TEST_CASE("host memory and the file system of the run are warned about when they are nearly full") {
  DeviceWarnings warnings;
  constexpr double kGb = 1e9;
  observe::HostSample host{.memory_used_bytes = 90 * kGb,
                           .memory_available_bytes = 10 * kGb,
                           .disk_free_bytes = 6 * kGb,
                           .disk_bytes = 100 * kGb};
  CHECK(warnings.look(sample_of({}, host)).empty());
  host.memory_used_bytes = 98 * kGb;
  host.memory_available_bytes = 2 * kGb;
  host.disk_free_bytes = 4 * kGb;  // 5 % of 100 GB, and 20 GB of more
  CHECK(
      warnings.look(sample_of({}, host)) ==
      Texts{"a: 98.0 of 100.0 GB of the host's memory are used: the kernel may kill a rank; lower "
            "data.threads or data.prefetch, or use fewer ranks on a node",
            "a: 4.0 GB are free on the file system of the run: a checkpoint may fail; free some, "
            "or lower checkpoint.keep_last"});
  CHECK(warnings.look(sample_of({}, host)).empty());
  CHECK(DeviceWarnings()
            .look(sample_of({}, {.disk_free_bytes = 21 * kGb, .disk_bytes = 1e15}))
            .empty());
}

}  // namespace
}  // namespace scaletrain::launcher
