#include "launcher/commands/doctor/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "launcher/platform/captured.h"
#include "lib/core/error.h"
#include "lib/core/process/cores.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

constexpr int kNeededCuda = 13000;  // LibTorch's
constexpr std::chrono::seconds kWorkerPatience{60};
constexpr std::chrono::seconds kAllReducePatience{120};
constexpr double kBytesOfGib = 1 << 30;
constexpr const char* kReinstall = "run scripts/setup.sh again";

// The JSON on the last line that a program printed.
nlohmann::json printed_json(const Captured& done) {
  return nlohmann::json::parse(done.output, nullptr, false);
}

std::string devices_text(const std::vector<Gpu>& gpus) {
  std::string text = fmt::format("{} x {}", gpus.size(), gpus[0].name);
  if (gpus[0].memory_bytes > 0) {
    text += fmt::format(", {:.0f} GiB", static_cast<double>(gpus[0].memory_bytes) / kBytesOfGib);
  }
  return text;
}

// Returns the environment of an independent launch, without variables of a surrounding job or
// launcher.
std::map<std::string, std::string> plain_environment() {
  std::map<std::string, std::string> result;
  for (const char* name :
       {"PET_NPROC_PER_NODE", "PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT",
        "PET_STANDALONE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_LOG_DIR", "PET_REDIRECTS",
        "PET_TEE", "PET_LOCAL_RANKS_FILTER", "PET_VIRTUAL_LOCAL_RANK", "SLURM_PROCID",
        "TORCHELASTIC_ERROR_FILE"}) {
    if (std::getenv(name) != nullptr) result[name] = "";
  }
  return result;
}

}  // namespace

Findings check_devices(const std::optional<Driver>& driver, const std::string& why, bool nodes,
                       const std::optional<std::string>& visible, int cpus) {
  Findings findings{well("CPUs", std::to_string(cpus))};
  if (!driver && !nodes) {
    findings.push_back(well("GPUs", "none: training uses the CPUs"));
    return findings;
  }
  if (!driver) {
    findings.push_back(failure(
        "driver", why, "install the driver's library, or start the container with --gpus all"));
    return findings;
  }
  const std::string versions =
      fmt::format("{}, CUDA up to {}.{}", driver->version, driver->cuda_version / 1000,
                  driver->cuda_version % 1000 / 10);
  if (driver->cuda_version < kNeededCuda) {
    findings.push_back(
        failure("driver", versions, "install driver 580 or newer: LibTorch needs CUDA 13"));
  } else {
    findings.push_back(well("driver", versions));
  }
  const auto lost = std::count_if(driver->gpus.begin(), driver->gpus.end(),
                                  [](const Gpu& gpu) { return gpu.uuid.empty(); });
  if (lost > 0) {
    findings.push_back(failure("GPUs",
                               fmt::format("{} of {} do not answer", lost, driver->gpus.size()),
                               "see dmesg for Xid errors; reset or replace them"));
    return findings;
  }
  const std::vector<Gpu> left = visible_of(driver->gpus, visible);
  const std::size_t asked = visible ? device_entries(*visible).size() : driver->gpus.size();
  if (left.empty()) {
    findings.push_back(warning("GPUs", fmt::format("none of {} is visible", driver->gpus.size()),
                               "see CUDA_VISIBLE_DEVICES"));
  } else if (left.size() < asked) {
    findings.push_back(
        failure("GPUs",
                fmt::format("CUDA_VISIBLE_DEVICES names {}, of which {} found",
                            core::counted(static_cast<std::int64_t>(asked), "device"),
                            left.size() == 1 ? "1 is" : fmt::format("{} are", left.size())),
                "name numbers below the number of GPUs, UUIDs or MIG instances: nvidia-smi -L"));
  } else {
    findings.push_back(well("GPUs", devices_text(left)));
  }
  return findings;
}

Finding check_worker(const std::string& worker, int gpus) {
  Captured done;
  try {
    done = run_captured({.arguments = {worker, "check"}, .variables = {}}, kWorkerPatience);
  } catch (const core::Error& error) {
    return failure("LibTorch", fmt::format("{}: {}", error.place(), error.found()),
                   "build it: ninja -C build/release scaletrain-worker");
  }
  const nlohmann::json json = printed_json(done);
  if (!done.ok() || !json.is_object()) return failure("LibTorch", done.trouble(), kReinstall);
  const std::string found =
      fmt::format("{}, starts in {:.2f} s", json.value("torch", ""), done.seconds);
  const int devices = json.value("devices", 0);
  if (gpus == 0) return well("LibTorch", found);
  if (devices < gpus) {
    return failure(
        "LibTorch",
        fmt::format("{}; uses {} of {} GPUs {}", found, devices, gpus, json.value("trouble", "")),
        "check the driver and libscaletrain_cuda.so beside scaletrain-worker");
  }
  return well("LibTorch", fmt::format("{}, uses {}", found, core::counted(devices, "GPU")));
}

Finding check_all_reduce(const std::string& launcher, const std::string& worker,
                         const std::string& device, int ranks) {
  const std::string name = device == "cuda" ? "NCCL all-reduce" : "Gloo all-reduce";
  Captured done;
  try {
    done = run_captured(
        {.arguments = {launcher, "launch", "--nproc", std::to_string(ranks), "--grace", "5s",
                       "--log-dir", "/dev/null", "--", worker, "loopback", device},
         .variables = plain_environment()},
        kAllReducePatience);
  } catch (const core::Error& error) {
    return failure(name, fmt::format("{}: {}", error.place(), error.found()), kReinstall);
  }
  const nlohmann::json json = printed_json(done);
  if (!done.ok() || !json.is_object()) {
    return failure(name, done.trouble(),
                   fmt::format("see all of it: scaletrain launch --nproc {} -- {} loopback {}",
                               ranks, worker, device));
  }
  return well(name, fmt::format("{}: connected in {:.2f} s, 4 MiB in {:.4f} s",
                                core::counted(ranks, "rank"), json.value("connect_s", 0.0),
                                json.value("all_reduce_s", 0.0)));
}

Findings check_training() {
  std::string why;
  const std::optional<Driver> driver = ask_driver(&why);
  std::error_code none;
  const bool nodes = std::filesystem::exists("/dev/nvidiactl", none) ||
                     std::filesystem::exists("/proc/driver/nvidia/gpus", none);
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<std::string> visible =
      list != nullptr ? std::optional<std::string>(list) : std::nullopt;
  Findings findings = check_devices(driver, why, nodes, visible, core::usable_cores());
  const int gpus = driver ? static_cast<int>(visible_of(driver->gpus, visible).size()) : 0;
  const std::string worker = core::program_beside_us("scaletrain-worker");
  findings.push_back(check_worker(worker, gpus));
  if (findings.back().state == Finding::State::kFailed) return findings;
  const std::string launcher = core::program_beside_us("scaletrain");
  findings.push_back(check_all_reduce(launcher, worker, "cpu", 2));
  if (gpus > 1) findings.push_back(check_all_reduce(launcher, worker, "cuda", gpus));
  return findings;
}

}  // namespace scaletrain::launcher
