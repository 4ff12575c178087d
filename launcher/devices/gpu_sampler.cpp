#include "launcher/devices/gpu_sampler.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace scaletrain::launcher {
namespace {

using Handle = Nvml::Handle;
using Reading = std::optional<double>;

// Constants and types of nvml.h.
constexpr int kSuccess = 0, kGpuIsLost = 15;
constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kCoreTemperature = 0;
constexpr int kCorrected = 0, kUncorrected = 1;
constexpr int kSinceDriverStart = 0;  // volatile counters
struct Utilization {
  unsigned gpu = 0, memory = 0;
};
struct GpuMemory {
  unsigned long long total = 0, free = 0, used = 0;
};
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency = 0;
  int type = 0, status = 0;
  union {
    double number;
    unsigned small;
    unsigned long long large;
  } value{};
};
static_assert(sizeof(FieldValue) == 40);
constexpr unsigned kAllLinks = std::numeric_limits<unsigned>::max();
constexpr std::array<unsigned, 4> kLinkErrors{38, 45, 52,
                                              59};        // CRC flit, CRC data, replay, recovery
constexpr unsigned kLinkSent = 138, kLinkReceived = 139;  // KiB of data

constexpr double kMilli = 1e-3, kLinkUnitBytes = 1024;

Reading value_of(const FieldValue& field) {
  if (field.status != kSuccess) return std::nullopt;
  if (field.type == 0) return field.value.number;
  if (field.type == 1) return field.value.small;
  return static_cast<double>(field.value.large);
}

struct Reason {
  std::uint64_t bit;
  std::string_view name;
};

// Idle GPUs and clocks that a person has set are no throttling.
constexpr std::array<Reason, 6> kReasons{{
    {0x04, "power cap"},
    {0x08, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "thermal slowdown (software)"},
    {0x40, "thermal slowdown (hardware)"},
    {0x80, "power brake"},
}};

}  // namespace

std::vector<std::string> throttle_reasons(std::uint64_t bits) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) names.emplace_back(reason.name);
  }
  return names;
}

// A counter that became smaller was reset, for example with its driver.
std::optional<double> GpuSampler::Growth::add(const std::optional<double>& now) {
  if (!now) return std::nullopt;
  const std::optional<double> before = std::exchange(last, now);
  const double grown = !before ? 0 : *now >= *before ? *now - *before : *now;
  sum = sum.value_or(0) + grown;
  return before ? std::optional(grown) : std::nullopt;
}

GpuSampler::GpuSampler(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return;
  nvml_.emplace();
  if (!nvml_->is_there()) {
    why_not_ = "NVML is absent";
    return;
  }
  if (const int status = nvml_->start(); status != kSuccess) {
    why_not_ = fmt::format("NVML does not answer, error {}", status);
    return;
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    Device device{
        .newest = {.index = static_cast<int>(i), .name = gpus[i].name, .uuid = gpus[i].uuid}};
    if (nvml_->call<int(const char*, Handle*)>("nvmlDeviceGetHandleByUUID", gpus[i].uuid.c_str(),
                                               &device.handle) == kSuccess) {
      devices_.push_back(std::move(device));
    }
  }
  if (devices_.empty()) why_not_ = "NVML does not know these GPUs";
}

std::vector<observe::GpuSample> GpuSampler::sample(double seconds) {
  std::vector<observe::GpuSample> samples;
  for (Device& device : devices_) {
    observe::GpuSample& newest = device.newest;
    newest = {.index = newest.index,
              .name = newest.name,
              .uuid = newest.uuid,
              .lost = is_lost(device),
              .ecc_corrected = newest.ecc_corrected,
              .ecc_uncorrected = newest.ecc_uncorrected,
              .nvlink_errors = newest.nvlink_errors,
              .energy_j = newest.energy_j,
              .energy_from_power = newest.energy_from_power};
    if (!newest.lost) {
      read_state(device);
      read_energy(device, seconds);
      read_errors(device);
      read_nvlink(device, seconds);
    }
    samples.push_back(newest);
  }
  return samples;
}

bool GpuSampler::is_lost(const Device& device) const {
  GpuMemory memory;
  return nvml_->call<int(Handle, GpuMemory*)>("nvmlDeviceGetMemoryInfo", device.handle, &memory) ==
         kGpuIsLost;
}

Reading GpuSampler::unsigned_value(const char* function, Handle handle) const {
  unsigned value = 0;
  if (nvml_->call<int(Handle, unsigned*)>(function, handle, &value) != kSuccess) {
    return std::nullopt;
  }
  return value;
}

void GpuSampler::read_state(Device& device) const {
  observe::GpuSample& sample = device.newest;
  Utilization utilization;
  if (nvml_->call<int(Handle, Utilization*)>("nvmlDeviceGetUtilizationRates", device.handle,
                                             &utilization) == kSuccess) {
    sample.utilization = utilization.gpu;
  }
  GpuMemory memory;
  if (nvml_->call<int(Handle, GpuMemory*)>("nvmlDeviceGetMemoryInfo", device.handle, &memory) ==
      kSuccess) {
    sample.memory_used_bytes = static_cast<double>(memory.used);
    sample.memory_bytes = static_cast<double>(memory.total);
  }
  const auto clock = [&](int kind) {
    unsigned mhz = 0;
    const int status = nvml_->call<int(Handle, int, unsigned*)>("nvmlDeviceGetClockInfo",
                                                                device.handle, kind, &mhz);
    return status == kSuccess ? Reading(mhz) : std::nullopt;
  };
  sample.sm_mhz = clock(kSmClock);
  sample.memory_mhz = clock(kMemoryClock);
  unsigned celsius = 0;
  if (nvml_->call<int(Handle, int, unsigned*)>("nvmlDeviceGetTemperature", device.handle,
                                               kCoreTemperature, &celsius) == kSuccess) {
    sample.temperature_c = celsius;
  }
  unsigned long long reasons = 0;
  if (nvml_->call<int(Handle, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons",
                                                    device.handle, &reasons) == kSuccess) {
    sample.throttled = throttle_reasons(reasons);
  }
}

// The counter is exact; without it the power is integrated by the trapezoidal rule.
void GpuSampler::read_energy(Device& device, double seconds) const {
  observe::GpuSample& sample = device.newest;
  const Reading power_mw = unsigned_value("nvmlDeviceGetPowerUsage", device.handle);
  if (power_mw) sample.power_w = *power_mw * kMilli;
  const Reading power_before = std::exchange(device.power_w, sample.power_w);
  unsigned long long millijoules = 0;
  if (nvml_->call<int(Handle, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption",
                                                    device.handle, &millijoules) == kSuccess) {
    device.energy_mj.add(static_cast<double>(millijoules));
    sample.energy_j = *device.energy_mj.sum * kMilli;
    return;
  }
  if (device.energy_mj.sum || !sample.power_w) return;
  const double mean_w = power_before ? (*power_before + *sample.power_w) / 2 : 0;
  device.integrated_j = device.integrated_j.value_or(0) + mean_w * seconds;
  sample.energy_j = device.integrated_j;
  sample.energy_from_power = true;
}

Reading GpuSampler::ecc_errors(Handle handle, int type) const {
  unsigned long long count = 0;
  const int status = nvml_->call<int(Handle, int, int, unsigned long long*)>(
      "nvmlDeviceGetTotalEccErrors", handle, type, kSinceDriverStart, &count);
  return status == kSuccess ? Reading(static_cast<double>(count)) : std::nullopt;
}

void GpuSampler::read_errors(Device& device) const {
  device.ecc_corrected.add(ecc_errors(device.handle, kCorrected));
  device.ecc_uncorrected.add(ecc_errors(device.handle, kUncorrected));
  device.newest.ecc_corrected = device.ecc_corrected.sum;
  device.newest.ecc_uncorrected = device.ecc_uncorrected.sum;
}

void GpuSampler::read_nvlink(Device& device, double seconds) const {
  std::array<FieldValue, kLinkErrors.size() + 2> fields{};
  for (std::size_t i = 0; i < kLinkErrors.size(); ++i) fields[i].field = kLinkErrors[i];
  FieldValue &sent = fields[kLinkErrors.size()], &received = fields.back();
  sent.field = kLinkSent;
  received.field = kLinkReceived;
  sent.scope = received.scope = kAllLinks;
  if (nvml_->call<int(Handle, int, FieldValue*)>("nvmlDeviceGetFieldValues", device.handle,
                                                 static_cast<int>(fields.size()),
                                                 fields.data()) != kSuccess) {
    return;
  }
  Reading errors;
  for (std::size_t i = 0; i < kLinkErrors.size(); ++i) {
    if (const Reading count = value_of(fields[i])) errors = errors.value_or(0) + *count;
  }
  device.nvlink_errors.add(errors);
  device.newest.nvlink_errors = device.nvlink_errors.sum;
  const auto rate = [seconds](Growth& counter, const Reading& now) {
    const Reading grown = counter.add(now);
    return grown && seconds > 0 ? Reading(*grown * kLinkUnitBytes / seconds) : std::nullopt;
  };
  device.newest.nvlink_sent_bytes_per_s = rate(device.sent, value_of(sent));
  device.newest.nvlink_received_bytes_per_s = rate(device.received, value_of(received));
}

}  // namespace scaletrain::launcher
