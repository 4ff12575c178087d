// Samples of a node's devices: one JSON object a line of RUN/logs/attempt_K/devices_NODE.jsonl.
//
// A field that the system does not report is nullopt, and left out of the line; it is never 0. All
// fields with their units: docs/reference/formats/devices.md.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::observe {

// A value of samples of type `Owner`.
template <class Owner>
struct SampleField {
  std::string_view name;
  std::optional<double> Owner::*member;
  bool is_total = false;  // grows from the start of the file; otherwise a mean over the interval
};

struct GpuSample {
  int index = 0;  // in CUDA's order
  std::string name{}, uuid{};
  bool lost = false;                     // the driver no longer reaches it
  std::vector<std::string> throttled{};  // reasons for reduced clocks within the interval
  std::optional<double> utilization{}, memory_used_bytes{}, memory_bytes{}, sm_mhz{}, memory_mhz{},
      temperature_c{}, power_w{}, nvlink_sent_bytes_per_s{}, nvlink_received_bytes_per_s{},
      ecc_corrected{}, ecc_uncorrected{}, nvlink_errors{}, energy_j{};
  bool energy_from_power = false;  // energy_j is the integral of power_w: there is no counter
};

inline constexpr std::array<SampleField<GpuSample>, 13> kGpuFields{{
    {"utilization", &GpuSample::utilization},
    {"memory_used_bytes", &GpuSample::memory_used_bytes},
    {"memory_bytes", &GpuSample::memory_bytes},
    {"sm_mhz", &GpuSample::sm_mhz},
    {"memory_mhz", &GpuSample::memory_mhz},
    {"temperature_c", &GpuSample::temperature_c},
    {"power_w", &GpuSample::power_w},
    {"nvlink_sent_bytes_per_s", &GpuSample::nvlink_sent_bytes_per_s},
    {"nvlink_received_bytes_per_s", &GpuSample::nvlink_received_bytes_per_s},
    {"ecc_corrected", &GpuSample::ecc_corrected, true},
    {"ecc_uncorrected", &GpuSample::ecc_uncorrected, true},
    {"nvlink_errors", &GpuSample::nvlink_errors, true},
    {"energy_j", &GpuSample::energy_j, true},
}};

struct HostSample {
  std::optional<double> cpu{}, memory_used_bytes{}, memory_available_bytes{},
      disk_read_bytes_per_s{}, disk_written_bytes_per_s{}, disk_free_bytes{}, disk_bytes{},
      network_received_bytes_per_s{}, network_sent_bytes_per_s{}, rdma_received_bytes_per_s{},
      rdma_sent_bytes_per_s{}, cpu_energy_j{}, memory_energy_j{};
};

inline constexpr std::array<SampleField<HostSample>, 13> kHostFields{{
    {"cpu", &HostSample::cpu},
    {"memory_used_bytes", &HostSample::memory_used_bytes},
    {"memory_available_bytes", &HostSample::memory_available_bytes},
    {"disk_read_bytes_per_s", &HostSample::disk_read_bytes_per_s},
    {"disk_written_bytes_per_s", &HostSample::disk_written_bytes_per_s},
    {"disk_free_bytes", &HostSample::disk_free_bytes},
    {"disk_bytes", &HostSample::disk_bytes},
    {"network_received_bytes_per_s", &HostSample::network_received_bytes_per_s},
    {"network_sent_bytes_per_s", &HostSample::network_sent_bytes_per_s},
    {"rdma_received_bytes_per_s", &HostSample::rdma_received_bytes_per_s},
    {"rdma_sent_bytes_per_s", &HostSample::rdma_sent_bytes_per_s},
    {"cpu_energy_j", &HostSample::cpu_energy_j, true},
    {"memory_energy_j", &HostSample::memory_energy_j, true},
}};

struct WorkerSample {
  int rank = 0;
  std::optional<double> cpu{}, memory_bytes{};  // percent of one core; resident memory
};

inline constexpr std::array<SampleField<WorkerSample>, 2> kWorkerFields{{
    {"cpu", &WorkerSample::cpu},
    {"memory_bytes", &WorkerSample::memory_bytes},
}};

struct DeviceSample {
  double time = 0;     // Unix seconds at the end of the interval
  double seconds = 0;  // length of the interval that the means cover
  int node = 0;
  std::string node_name{};  // the machine's
  int ranks = 0;            // of the attempt on this node
  std::string
      no_gpus{};  // why there are no GPUs in the sample; "": there are, or none was asked for
  std::string no_rapl{};  // why there is no energy of the CPUs; "": there is
  HostSample host{};
  std::vector<GpuSample> gpus{};
  std::vector<WorkerSample> workers{};
};

nlohmann::ordered_json to_json(const DeviceSample& sample);

// Returns nullopt if `json` is no sample.
std::optional<DeviceSample> device_sample(const nlohmann::ordered_json& json);

// Joins a sample with the one that follows it: means are weighted by the intervals, totals are the
// later ones. GPUs and workers that only one of them has are kept.
DeviceSample joined(const DeviceSample& first, const DeviceSample& second);

}  // namespace scaletrain::observe
