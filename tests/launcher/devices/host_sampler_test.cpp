#include "launcher/devices/host_sampler.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "tests/launcher/devices/fake_system.h"

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

void set_counters(const FakeSystem& system, int factor) {
  const std::string one = std::to_string(factor), two = std::to_string(2 * factor);
  const std::string ticks = std::to_string(100 * factor);
  // user nice system idle iowait irq softirq steal guest: 6 of 8 parts are busy
  system.set("proc/stat", "cpu  " + ticks + " " + ticks + " " + ticks + " " + ticks + " " + ticks +
                              " " + ticks + " " + ticks + " " + ticks + " " + ticks +
                              " 0\ncpu0 1 1 1 1\n");
  const std::string disk = " 0 0 " + one + "000 0 0 0 " + two + "000 0 0 0 0\n";
  for (const char* const name : {"nvme0n1", "sda", "loop0", "dm-0", "md0"}) {
    system.set(std::string("sys/block/") + name + "/stat", disk);
  }
  for (const char* const name : {"eth0", "lo", "docker0"}) {
    const std::string folder = std::string("sys/class/net/") + name + "/";
    system.set(folder + "statistics/rx_bytes", one + "000\n");
    system.set(folder + "statistics/tx_bytes", two + "000\n");
  }
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  system.set(port + "port_rcv_data", one + "000\n");
  system.set(port + "port_xmit_data", two + "000\n");
}

TEST_CASE("rates of a node are means over the time between two samples") {
  const FakeSystem system;
  set_counters(system, 1);
  system.set("sys/class/net/eth0/device/vendor", "0x8086\n");
  system.set("proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\nMemAvailable:    4000 kB\n");
  HostSampler sampler(system.root(), system.root());
  const observe::HostSample first = sampler.host(0);
  CHECK_FALSE(first.cpu.has_value());
  CHECK_FALSE(first.network_sent_bytes_per_s.has_value());
  CHECK(*first.memory_available_bytes == 4000 * 1024);
  CHECK(*first.memory_used_bytes == 12000 * 1024);
  CHECK(*first.disk_free_bytes > 0);
  CHECK(*first.disk_bytes >= *first.disk_free_bytes);
  set_counters(system, 3);
  const observe::HostSample sample = sampler.host(2);
  CHECK(*sample.cpu == Approx(75));                            // 6 of 8 parts
  CHECK(*sample.disk_read_bytes_per_s == Approx(2000 * 512));  // 2 disks, 2,000 sectors in 2 s
  CHECK(*sample.disk_written_bytes_per_s == Approx(4000 * 512));
  CHECK(*sample.network_received_bytes_per_s == Approx(1000));  // eth0 alone is a device
  CHECK(*sample.network_sent_bytes_per_s == Approx(2000));
  CHECK(*sample.rdma_received_bytes_per_s == Approx(4000));  // words of 4 bytes
  CHECK(*sample.rdma_sent_bytes_per_s == Approx(8000));
}

TEST_CASE("in a container without network devices all interfaces but the loopback count") {
  const FakeSystem system;
  set_counters(system, 1);
  HostSampler sampler(system.root(), system.root());
  sampler.host(0);
  set_counters(system, 2);
  CHECK(*sampler.host(1).network_received_bytes_per_s == Approx(2000));  // eth0 and docker0
}

TEST_CASE(
    "a field that the system does not report is absent, and so is the rate of a reset counter") {
  const FakeSystem system;
  HostSampler sampler(system.root() / "nowhere", system.root());
  CHECK_FALSE(sampler.host(0).cpu.has_value());
  CHECK_FALSE(sampler.host(1).memory_used_bytes.has_value());
  CHECK_FALSE(sampler.host(1).disk_free_bytes.has_value());
  CHECK_FALSE(sampler.host(1).rdma_sent_bytes_per_s.has_value());
  set_counters(system, 5);
  sampler.host(1);
  set_counters(system, 1);
  CHECK_FALSE(sampler.host(1).network_sent_bytes_per_s.has_value());
}

TEST_CASE("a worker has its share of a core and its resident memory") {
  const FakeSystem system;
  const double ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto set_ticks = [&](double user, double kernel) {
    system.set("proc/77/stat", "77 (a (b) c) S 1 77 77 0 -1 0 0 0 0 0 " +
                                   std::to_string(static_cast<int>(user)) + " " +
                                   std::to_string(static_cast<int>(kernel)) +
                                   " 0 0 20 0 1 0 100 1000000 25 18446744073709551615 1\n");
  };
  HostSampler sampler(system.root(), system.root());
  set_ticks(0, 0);
  const std::vector<WorkerProcess> processes{{.rank = 3, .pid = 77}, {.rank = 4, .pid = 78}};
  std::vector<observe::WorkerSample> samples = sampler.workers(processes, 0);
  REQUIRE(samples.size() == 1);  // 78 has ended
  CHECK(samples[0].rank == 3);
  CHECK_FALSE(samples[0].cpu.has_value());
  CHECK(*samples[0].memory_bytes == 25.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  set_ticks(2 * ticks_per_s, ticks_per_s);
  samples = sampler.workers(processes, 2);
  CHECK(*samples.at(0).cpu == Approx(150));  // 3 s of CPU time in 2 s
}

}  // namespace
}  // namespace scaletrain::launcher
