#include "launcher/devices/device_sampler.h"

#include <doctest/doctest.h>
#include <time.h>
#include <unistd.h>

#include "tests/launcher/devices/fake_system.h"

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

double thread_cpu_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

TEST_CASE("totals of a second file begin at the last sample of the first one") {
  const FakeSystem system;
  const auto set_joules = [&system](const char* microjoules) {
    system.set_zone("intel-rapl:0", "package-0", microjoules);
  };
  set_joules("1000000");
  DeviceSampler sampler(system.root(), {}, system.root());
  CHECK(sampler.sample(0, {}).host.cpu_energy_j == 0);
  set_joules("4000000");
  CHECK(*sampler.sample(1, {}).host.cpu_energy_j == Approx(3));
  sampler.begin_file();
  set_joules("9000000");
  const observe::DeviceSample sample = sampler.sample(1, {});
  CHECK(*sample.host.cpu_energy_j == Approx(5));  // with the time between the files
  CHECK(sample.seconds == 1);
  CHECK(sample.no_rapl.empty());
  CHECK(sample.no_gpus.empty());
}

TEST_CASE("sampling this machine each second takes at most 0.43 % of a core") {
  constexpr int kSamples = 100;
  constexpr double kMostMs = 4.3;
  DeviceSampler sampler("/tmp", {});
  const std::vector<WorkerProcess> workers(8, {.rank = 0, .pid = getpid()});
  sampler.sample(0, workers);
  const double began = thread_cpu_ms();
  for (int i = 0; i < kSamples; ++i) sampler.sample(1, workers);
  const double sample_ms = (thread_cpu_ms() - began) / kSamples;
  MESSAGE("CPU time of a sample: " << sample_ms << " ms");
  CHECK(sample_ms < kMostMs);
}

}  // namespace
}  // namespace scaletrain::launcher
