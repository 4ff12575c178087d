#include "launcher/commands/doctor/training.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using State = Finding::State;

// "state: found" of the last line.
std::string devices(const std::optional<Driver>& driver, bool nodes,
                    const std::optional<std::string>& visible = std::nullopt) {
  const Findings findings = check_devices(driver, "no answer", nodes, visible, 8);
  const Finding& last = findings.back();
  const char* const state = last.state == State::kOk        ? "ok"
                            : last.state == State::kWarning ? "warning"
                                                            : "failed";
  return std::string(state) + ": " + last.name + ": " + last.found;
}

Driver eight_gpus() {
  Driver driver{.version = "580.82", .cuda_version = 13000, .gpus = {}};
  for (int i = 0; i < 8; ++i) {
    driver.gpus.push_back({.name = "H200",
                           .uuid = "GPU-" + std::to_string(i),
                           .pci = "",
                           .memory_bytes = 139LL << 30});
  }
  return driver;
}

TEST_CASE("a machine without GPUs is fine; one whose driver does not answer is not") {
  CHECK(devices(std::nullopt, false) == "ok: GPUs: none: training uses the CPUs");
  CHECK(devices(std::nullopt, true) == "failed: driver: no answer");
}

TEST_CASE("the devices that are visible are counted") {
  CHECK(devices(eight_gpus(), true) == "ok: GPUs: 8 x H200, 139 GiB");
  CHECK(devices(eight_gpus(), true, "GPU-3,1") == "ok: GPUs: 2 x H200, 139 GiB");
  CHECK(devices(eight_gpus(), true, "") == "warning: GPUs: none of 8 is visible");
  CHECK(devices(eight_gpus(), true, "0,9") ==
        "failed: GPUs: CUDA_VISIBLE_DEVICES names 2 devices, of which 1 is found");
}

TEST_CASE("an old driver and a lost device fail") {
  Driver driver = eight_gpus();
  driver.gpus[5] = {};
  CHECK(devices(driver, true) == "failed: GPUs: 1 of 8 do not answer");
  driver = eight_gpus();
  driver.cuda_version = 12040;
  const Findings findings = check_devices(driver, "", true, std::nullopt, 8);
  CHECK(findings[1].state == State::kFailed);
  CHECK(findings[1].found == "580.82, CUDA up to 12.4");
}

TEST_CASE("a worker that is not there or says nothing sensible fails") {
  CHECK(check_worker("/nowhere/scaletrain-worker", 0).state == State::kFailed);
  CHECK(check_worker("/bin/true", 0).found == "exit code 0");
  CHECK(check_worker("/bin/false", 0).found == "exit code 1");
  CHECK(check_all_reduce("/bin/false", "x", "cpu", 2).name == "Gloo all-reduce");
  CHECK(check_all_reduce("/bin/false", "x", "cuda", 2).state == State::kFailed);
}

}  // namespace
}  // namespace scaletrain::launcher
