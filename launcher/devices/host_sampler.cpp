#include "launcher/devices/host_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>

#include "launcher/devices/system_files.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Counter = std::optional<double>;

constexpr double kCpuPercent = 100;

// Returns the growth of a counter per second; nullopt also if it was reset.
Counter rate(const Counter& now, const Counter& before, double seconds) {
  if (!now || !before || *now < *before || seconds <= 0) return std::nullopt;
  return (*now - *before) / seconds;
}

void add_to(Counter& sum, double value) { sum = sum.value_or(0) + value; }

bool is_virtual_disk(std::string_view name) {
  constexpr std::array<std::string_view, 7> kVirtual{"loop", "ram", "zram", "dm-",
                                                     "md",   "nbd", "sr"};
  return std::ranges::any_of(kVirtual,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

// Returns the bytes of "MemTotal:  16 kB" in the text of /proc/meminfo.
Counter meminfo_bytes(std::string_view text, std::string_view name) {
  constexpr double kKibibyte = 1024;
  const std::size_t found = text.find(name);
  if (found == std::string_view::npos) return std::nullopt;
  const std::vector<double> numbers = numbers_of(text.substr(found + name.size()));
  return numbers.empty() ? std::nullopt : Counter(numbers.front() * kKibibyte);
}

struct ProcessStat {
  double ticks = 0, resident_pages = 0;
};

// /proc/PID/stat: "12 (name) S ..."; the name may hold anything.
std::optional<ProcessStat> process_stat(const std::string& text) {
  constexpr std::size_t kUserTime = 11, kSystemTime = 12, kResident = 21;  // after the state
  const std::size_t name_end = text.rfind(") ");
  constexpr std::size_t kStateBytes = 3;  // ") S"
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<double> fields =
      numbers_of(std::string_view(text).substr(std::min(name_end + kStateBytes, text.size())));
  if (fields.size() < kResident) return std::nullopt;
  return ProcessStat{.ticks = fields[kUserTime - 1] + fields[kSystemTime - 1],
                     .resident_pages = fields[kResident - 1]};
}

}  // namespace

HostSampler::HostSampler(fs::path run, fs::path root)
    : run_(std::move(run)), root_(std::move(root)) {}

observe::HostSample HostSampler::host(double seconds) {
  observe::HostSample sample;
  add_cpu(sample);
  add_memory(sample);
  add_disk(sample);
  const Pair disks = disk_bytes(), network = network_bytes(), rdma = rdma_bytes();
  sample.disk_read_bytes_per_s = rate(disks.in, disks_.in, seconds);
  sample.disk_written_bytes_per_s = rate(disks.out, disks_.out, seconds);
  sample.network_received_bytes_per_s = rate(network.in, network_.in, seconds);
  sample.network_sent_bytes_per_s = rate(network.out, network_.out, seconds);
  sample.rdma_received_bytes_per_s = rate(rdma.in, rdma_.in, seconds);
  sample.rdma_sent_bytes_per_s = rate(rdma.out, rdma_.out, seconds);
  disks_ = disks;
  network_ = network;
  rdma_ = rdma;
  return sample;
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are in user.
void HostSampler::add_cpu(observe::HostSample& sample) {
  constexpr std::size_t kIdle = 3, kIoWait = 4, kCounted = 8;
  const std::optional<std::string> text = system_text(root_ / "proc/stat");
  if (!text || !text->starts_with("cpu ")) return;
  std::vector<double> ticks = numbers_of(std::string_view(*text).substr(4));
  if (ticks.size() <= kIdle) return;
  ticks.resize(kCounted);
  const double all = std::accumulate(ticks.begin(), ticks.end(), 0.0);
  const double busy = all - ticks[kIdle] - ticks[kIoWait];
  if (cpu_ && all > cpu_->second) {
    sample.cpu = std::max(0.0, kCpuPercent * (busy - cpu_->first) / (all - cpu_->second));
  }
  cpu_ = {busy, all};
}

void HostSampler::add_memory(observe::HostSample& sample) const {
  const std::optional<std::string> text = system_text(root_ / "proc/meminfo");
  if (!text) return;
  const Counter total = meminfo_bytes(*text, "MemTotal:");
  sample.memory_available_bytes = meminfo_bytes(*text, "MemAvailable:");
  if (total && sample.memory_available_bytes) {
    sample.memory_used_bytes = *total - *sample.memory_available_bytes;
  }
}

void HostSampler::add_disk(observe::HostSample& sample) const {
  std::error_code failed;
  const fs::space_info space = fs::space(run_, failed);
  if (failed) return;
  sample.disk_free_bytes = static_cast<double>(space.available);
  sample.disk_bytes = static_cast<double>(space.capacity);
}

// Whole disks only: partitions and virtual disks would count bytes twice.
HostSampler::Pair HostSampler::disk_bytes() const {
  constexpr std::size_t kSectorsRead = 2, kSectorsWritten = 6;
  constexpr double kSectorBytes = 512;
  Pair bytes;
  for (const std::string& name : system_names(root_ / "sys/block")) {
    if (is_virtual_disk(name)) continue;
    const std::vector<double> stat =
        numbers_of(system_text(root_ / "sys/block" / name / "stat").value_or(""));
    if (stat.size() <= kSectorsWritten) continue;
    add_to(bytes.in, stat[kSectorsRead] * kSectorBytes);
    add_to(bytes.out, stat[kSectorsWritten] * kSectorBytes);
  }
  return bytes;
}

// Interfaces of devices; in a container, which has none, all but the loopback.
HostSampler::Pair HostSampler::network_bytes() const {
  const fs::path folder = root_ / "sys/class/net";
  Pair physical, others;
  for (const std::string& name : system_names(folder)) {
    const Counter in = system_number(folder / name / "statistics/rx_bytes");
    const Counter out = system_number(folder / name / "statistics/tx_bytes");
    if (name == "lo" || !in || !out) continue;
    std::error_code absent;
    Pair& bytes = fs::exists(folder / name / "device", absent) ? physical : others;
    add_to(bytes.in, *in);
    add_to(bytes.out, *out);
  }
  return physical.in ? physical : others;
}

// InfiniBand and RoCE ports, whose traffic the interfaces do not count.
HostSampler::Pair HostSampler::rdma_bytes() const {
  constexpr double kWordBytes = 4;  // the unit of these counters
  const fs::path folder = root_ / "sys/class/infiniband";
  Pair bytes;
  for (const std::string& device : system_names(folder)) {
    for (const std::string& port : system_names(folder / device / "ports")) {
      const fs::path counters = folder / device / "ports" / port / "counters";
      const Counter in = system_number(counters / "port_rcv_data");
      const Counter out = system_number(counters / "port_xmit_data");
      if (in) add_to(bytes.in, *in * kWordBytes);
      if (out) add_to(bytes.out, *out * kWordBytes);
    }
  }
  return bytes;
}

std::vector<observe::WorkerSample> HostSampler::workers(const std::vector<WorkerProcess>& processes,
                                                        double seconds) {
  static const double ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  static const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::vector<observe::WorkerSample> samples;
  std::map<pid_t, double> ticks;
  for (const WorkerProcess& process : processes) {
    const std::optional<ProcessStat> stat = process_stat(
        system_text(root_ / "proc" / std::to_string(process.pid) / "stat").value_or(""));
    if (!stat) continue;
    observe::WorkerSample sample{.rank = process.rank,
                                 .memory_bytes = stat->resident_pages * page_bytes};
    if (const auto before = ticks_.find(process.pid); before != ticks_.end()) {
      const Counter used = rate(stat->ticks, before->second, seconds);
      if (used) sample.cpu = kCpuPercent * *used / ticks_per_s;
    }
    ticks[process.pid] = stat->ticks;
    samples.push_back(sample);
  }
  ticks_ = std::move(ticks);
  return samples;
}

}  // namespace scaletrain::launcher
