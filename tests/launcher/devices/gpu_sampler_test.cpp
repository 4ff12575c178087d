#include "launcher/devices/gpu_sampler.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

// The library of the tests (tests/launcher/fake_nvml.cpp) in the driver's place.
class FakeDriver {
 public:
  FakeDriver()
      : library_(dlopen((std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                         "../fake_nvml/libnvidia-ml.so.1")
                            .c_str(),
                        RTLD_NOW)) {
    REQUIRE(library_ != nullptr);
    setenv("FAKE_NVML_VALUES", folder_.file("values").c_str(), 1);
  }
  ~FakeDriver() {
    unsetenv("FAKE_NVML_VALUES");
    dlclose(library_);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  void set(const std::string& values) const { folder_.write("values", values); }

 private:
  test::TemporaryFolder folder_;
  void* library_;
};

const std::vector<Gpu> kGpus{{.name = "H200", .uuid = "GPU-u0", .pci = ""},
                             {.name = "H200", .uuid = "GPU-u1", .pci = ""}};

TEST_CASE("a GPU has the driver's values, and totals that begin at 0") {
  const FakeDriver driver;
  const std::string same =
      "0 utilization 97\n0 memory_used 1000\n0 sm_mhz 1980\n0 memory_mhz 2619\n"
      "0 temperature_c 71\n0 power_mw 650500\n0 throttle 73\n";
  driver.set(same +
             "0 energy_mj 5000\n0 ecc_corrected 7\n0 ecc_uncorrected 1\n"
             "0 field38 4\n0 field45 1\n0 field138 100\n0 field139 10\n");
  GpuSampler sampler(std::vector<Gpu>{kGpus[0]});
  CHECK(sampler.why_not().empty());
  observe::GpuSample gpu = sampler.sample(0).at(0);
  CHECK(gpu.name == "H200");
  CHECK(gpu.utilization == 97);
  CHECK(gpu.memory_used_bytes == 1000);
  CHECK(gpu.memory_bytes == 1 << 30);
  CHECK(gpu.sm_mhz == 1980);
  CHECK(gpu.memory_mhz == 2619);
  CHECK(gpu.temperature_c == 71);
  CHECK(gpu.power_w == 650.5);
  // 73 = 0x49: idle, hardware slowdown and hardware thermal slowdown
  CHECK(gpu.throttled ==
        std::vector<std::string>{"hardware slowdown", "thermal slowdown (hardware)"});
  for (const auto& total :
       {gpu.energy_j, gpu.ecc_corrected, gpu.ecc_uncorrected, gpu.nvlink_errors}) {
    CHECK(total == 0);
  }
  CHECK_FALSE(gpu.nvlink_sent_bytes_per_s.has_value());
  driver.set(same +
             "0 energy_mj 8500\n0 ecc_corrected 9\n0 ecc_uncorrected 2\n"
             "0 field38 6\n0 field45 2\n0 field138 300\n0 field139 20\n");
  gpu = sampler.sample(2).at(0);
  CHECK(*gpu.energy_j == Approx(3.5));
  CHECK_FALSE(gpu.energy_from_power);
  CHECK(gpu.ecc_corrected == 2);
  CHECK(gpu.ecc_uncorrected == 1);
  CHECK(gpu.nvlink_errors == 3);                              // 2 CRC flit, 1 CRC data
  CHECK(*gpu.nvlink_sent_bytes_per_s == Approx(100 * 1024));  // 200 KiB in 2 s
  CHECK(*gpu.nvlink_received_bytes_per_s == Approx(5 * 1024));
}

TEST_CASE(
    "values that the driver does not support are absent, and without a counter power is summed") {
  const FakeDriver driver;
  driver.set("0 power_mw 100000\n");
  GpuSampler sampler(kGpus);
  std::vector<observe::GpuSample> gpus = sampler.sample(0);
  CHECK_FALSE(gpus.at(0).utilization.has_value());
  CHECK_FALSE(gpus[0].ecc_corrected.has_value());
  CHECK_FALSE(gpus[0].nvlink_errors.has_value());
  CHECK(gpus[0].throttled.empty());
  CHECK_FALSE(gpus.at(1).energy_j.has_value());  // neither energy nor power
  driver.set("0 power_mw 300000\n");
  sampler.sample(2);
  driver.set("0 power_mw 300000\n");
  gpus = sampler.sample(1);
  CHECK(*gpus.at(0).energy_j == Approx(200 * 2 + 300));  // mean of 100 and 300 W over 2 s
  CHECK(gpus[0].energy_from_power);
}

TEST_CASE("a GPU that the driver no longer reaches is lost, and keeps its energy") {
  const FakeDriver driver;
  driver.set("0 energy_mj 1000\n0 utilization 5\n1 energy_mj 1\n");
  GpuSampler sampler(kGpus);
  sampler.sample(0);
  driver.set("0 energy_mj 4000\n0 utilization 5\n1 energy_mj 1\n");
  sampler.sample(1);
  driver.set("0 lost 1\n0 utilization 5\n1 energy_mj 2\n");
  const std::vector<observe::GpuSample> gpus = sampler.sample(1);
  CHECK(gpus.at(0).lost);
  CHECK_FALSE(gpus[0].utilization.has_value());
  CHECK(*gpus[0].energy_j == Approx(3));
  CHECK_FALSE(gpus.at(1).lost);
}

TEST_CASE("each throttle reason under load has a name") {
  CHECK(throttle_reasons(0x03).empty());  // idle, clocks that a person set
  CHECK(throttle_reasons(0x1ff) ==
        std::vector<std::string>{"power cap", "hardware slowdown", "sync boost",
                                 "thermal slowdown (software)", "thermal slowdown (hardware)",
                                 "power brake"});
}

TEST_CASE("without GPUs nothing is missing, and a driver that refuses is named") {
  CHECK(GpuSampler(std::vector<Gpu>{}).why_not().empty());
  const FakeDriver driver;
  setenv("FAKE_NVML_REFUSES", "1", 1);
  CHECK(GpuSampler(kGpus).why_not() == "NVML does not answer, error 9");
  unsetenv("FAKE_NVML_REFUSES");
}

}  // namespace
}  // namespace scaletrain::launcher
