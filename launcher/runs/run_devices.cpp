#include "launcher/runs/run_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lib/observe/plot.h"

namespace scaletrain::launcher {
namespace {

using observe::DeviceSample;
using observe::GpuSample;
using observe::PlotPoint;
using Reading = std::optional<double>;

constexpr double kGb = 1e9, kMb = 1e6;

// Adds "  CPU 34 %"; nothing for a value that was not measured.
template <class... Args>
void add_part(std::string& text, bool is_known, fmt::format_string<Args...> format,
              Args&&... args) {
  if (!is_known) return;
  if (!text.empty()) text += "  ";
  text += fmt::format(format, std::forward<Args>(args)...);
}

std::string host_text(const DeviceSample& sample) {
  const observe::HostSample& host = sample.host;
  std::string text = sample.node_name;
  add_part(text, host.cpu.has_value(), "CPU {:.0f} %", host.cpu.value_or(0));
  if (host.memory_used_bytes && host.memory_available_bytes) {
    add_part(text, true, "memory {:.1f}/{:.1f} GB", *host.memory_used_bytes / kGb,
             (*host.memory_used_bytes + *host.memory_available_bytes) / kGb);
  }
  add_part(text, host.disk_free_bytes.has_value(), "disk {:.0f} GB free",
           host.disk_free_bytes.value_or(0) / kGb);
  if (host.network_received_bytes_per_s && host.network_sent_bytes_per_s) {
    add_part(text, true, "network {:.1f} MB/s in, {:.1f} MB/s out",
             *host.network_received_bytes_per_s / kMb, *host.network_sent_bytes_per_s / kMb);
  }
  return text;
}

std::string gpu_text(const GpuSample& gpu) {
  if (gpu.lost) return "lost: the driver no longer reaches it";
  std::string text;
  add_part(text, gpu.utilization.has_value(), "{:.0f} %", gpu.utilization.value_or(0));
  if (gpu.memory_used_bytes && gpu.memory_bytes) {
    add_part(text, true, "{:.1f}/{:.1f} GB", *gpu.memory_used_bytes / kGb, *gpu.memory_bytes / kGb);
  }
  add_part(text, gpu.power_w.has_value(), "{:.0f} W", gpu.power_w.value_or(0));
  add_part(text, gpu.temperature_c.has_value(), "{:.0f} C", gpu.temperature_c.value_or(0));
  add_part(text, gpu.sm_mhz.has_value(), "{:.0f} MHz", gpu.sm_mhz.value_or(0));
  add_part(text, gpu.ecc_uncorrected.value_or(0) > 0, "{:.0f} uncorrected ECC errors",
           gpu.ecc_uncorrected.value_or(0));
  add_part(text, !gpu.throttled.empty(), "throttled: {}", fmt::join(gpu.throttled, ", "));
  return text;
}

// All samples of a run in order of time.
std::vector<DeviceSample> device_samples_of(const RunRecord& run) {
  std::vector<DeviceSample> samples;
  for (const observe::DeviceFile& file : observe::device_files(run.folder)) {
    for (DeviceSample& one : observe::read_device_samples(file.path)) {
      samples.push_back(std::move(one));
    }
  }
  std::ranges::stable_sort(samples, {}, &DeviceSample::time);
  return samples;
}

enum class Over { kMean, kSum, kHighest };

// Joins the values of a sample's devices.
class Joined {
 public:
  explicit Joined(Over over) : over_(over) {}
  void add(const Reading& value) {
    if (!value) return;
    sum_ += *value;
    highest_ = std::max(highest_.value_or(*value), *value);
    ++count_;
  }
  Reading result() const {
    if (count_ == 0 || over_ == Over::kHighest) return highest_;
    return over_ == Over::kSum ? sum_ : sum_ / count_;
  }

 private:
  Over over_;
  double sum_ = 0;
  int count_ = 0;
  Reading highest_;
};

struct Quantity {
  const char* title;
  double unit;
  Over over;  // the GPUs of a node
  Reading GpuSample::*gpu;
  Reading observe::HostSample::*host;
};

constexpr std::array<Quantity, 6> kCurves{{
    {"GPU utilization, mean (%)", 1, Over::kMean, &GpuSample::utilization, nullptr},
    {"GPU memory, highest (GB)", kGb, Over::kHighest, &GpuSample::memory_used_bytes, nullptr},
    {"GPU power of a node (W)", 1, Over::kSum, &GpuSample::power_w, nullptr},
    {"GPU temperature, highest (C)", 1, Over::kHighest, &GpuSample::temperature_c, nullptr},
    {"CPU utilization of a node (%)", 1, Over::kMean, nullptr, &observe::HostSample::cpu},
    {"host memory of a node (GB)", kGb, Over::kMean, nullptr,
     &observe::HostSample::memory_used_bytes},
}};

Reading value_of(const DeviceSample& sample, const Quantity& quantity) {
  Joined joined(quantity.over);
  if (quantity.host != nullptr) joined.add(sample.host.*quantity.host);
  if (quantity.gpu != nullptr) {
    for (const GpuSample& gpu : sample.gpus) joined.add(gpu.*quantity.gpu);
  }
  const Reading value = joined.result();
  return value ? Reading(*value / quantity.unit) : std::nullopt;
}

// Returns the step at `time`, between the logged steps around it; nullopt outside of them.
std::optional<double> step_at(const std::map<double, double>& steps, double time) {
  const auto after = steps.lower_bound(time);
  if (after == steps.end()) return std::nullopt;
  if (after->first == time || after == steps.begin()) {
    return after->first == time ? std::optional(after->second) : std::nullopt;
  }
  const auto before = std::prev(after);
  const double share = (time - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

RunJson curves_of(const RunRecord& run, const std::vector<DeviceSample>& samples) {
  constexpr int kMostPoints = 500;
  std::map<double, double> steps;  // by time
  for (const auto& [step, record] : run.trained) {
    if (const Reading time = number_of(record, "time")) steps[*time] = static_cast<double>(step);
  }
  RunJson curves = RunJson::array();
  for (const Quantity& quantity : kCurves) {
    std::vector<PlotPoint> points;
    for (const DeviceSample& sample : samples) {
      const std::optional<double> step = step_at(steps, sample.time);
      const Reading value = value_of(sample, quantity);
      if (step && value) points.push_back({*step, *value});
    }
    if (points.empty()) continue;
    RunJson curve{
        {"title", quantity.title}, {"step", RunJson::array()}, {"value", RunJson::array()}};
    for (const PlotPoint& point : observe::downsample(points, kMostPoints)) {
      curve["step"].push_back(point.x);
      curve["value"].push_back(point.y);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string gpus_text(const std::vector<DeviceSample>& samples) {
  double seconds = 0, throttled_s = 0, busy = 0, watts = 0;
  Joined temperature(Over::kHighest);
  std::set<std::string> reasons;
  for (const DeviceSample& sample : samples) {
    for (const GpuSample& gpu : sample.gpus) {
      if (gpu.lost || !gpu.utilization) continue;
      seconds += sample.seconds;
      busy += *gpu.utilization * sample.seconds;
      watts += gpu.power_w.value_or(0) * sample.seconds;
      temperature.add(gpu.temperature_c);
      if (gpu.throttled.empty()) continue;
      throttled_s += sample.seconds;
      reasons.insert(gpu.throttled.begin(), gpu.throttled.end());
    }
  }
  if (seconds <= 0) return "";
  std::string text = fmt::format("{:.1f} % utilization", busy / seconds);
  if (watts > 0) text += fmt::format(", {:.0f} W each", watts / seconds);
  if (const Reading highest = temperature.result())
    text += fmt::format(", at most {:.0f} C", *highest);
  if (throttled_s > 0) {
    text += fmt::format("; throttled {:.0f} % of the time: {}", 100 * throttled_s / seconds,
                        fmt::join(reasons, ", "));
  }
  return fmt::format("  {:<12} {}\n", "GPUs", text);
}

}  // namespace

std::optional<recipe::Cost> cost_rates(const RunJson& recipe) {
  if (!recipe.is_object() || !recipe.contains("cost") || !recipe["cost"].is_object()) {
    return std::nullopt;
  }
  const RunJson& cost = recipe["cost"];
  return recipe::Cost{.price = number_of(cost, "price"),
                      .kwh_price = number_of(cost, "kwh_price"),
                      .g_per_kwh = number_of(cost, "g_per_kwh"),
                      .region = string_of(cost, "region")};
}

RunJson newest_devices(const std::filesystem::path& run) {
  RunJson devices = RunJson::array();
  for (const DeviceSample& sample : observe::newest_device_samples(run)) {
    devices.push_back(observe::to_json(sample));
  }
  return devices;
}

std::vector<DeviceRow> device_rows(const RunJson& devices) {
  std::vector<DeviceRow> rows;
  for (const RunJson& json : devices) {
    const std::optional<DeviceSample> sample = observe::device_sample(json);
    if (!sample) continue;
    rows.push_back({fmt::format("node {}", sample->node), host_text(*sample)});
    for (const GpuSample& gpu : sample->gpus) {
      std::string text = gpu_text(gpu);
      if (devices.size() > 1) text = sample->node_name + "  " + text;
      rows.push_back({fmt::format("gpu {}", gpu.index), std::move(text)});
    }
  }
  return rows;
}

std::string devices_text(const RunRecord& run) {
  return observe::energy_text(observe::run_energy(run.folder), cost_rates(run.recipe)) +
         gpus_text(device_samples_of(run));
}

RunJson devices_json(const RunRecord& run) {
  const std::vector<DeviceSample> samples = device_samples_of(run);
  if (samples.empty()) return nullptr;
  return {{"energy", observe::energy_json(observe::run_energy(run.folder), cost_rates(run.recipe))},
          {"curves", curves_of(run, samples)}};
}

}  // namespace scaletrain::launcher
