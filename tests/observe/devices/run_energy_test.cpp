#include "lib/observe/devices/run_energy.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

namespace fs = std::filesystem;
using doctest::Approx;

constexpr double kKwh = 3.6e6;  // joules

// A run whose files have two samples, the second one an hour after the first.
class Run {
 public:
  void add(int attempt, int node, DeviceSample last) const {
    const fs::path logs = path() / "logs" / ("attempt_" + std::to_string(attempt));
    fs::create_directories(logs);
    DeviceLog log(device_file(logs, node));
    last.time = 5000;
    last.seconds = 1;
    log.append({.time = 1400, .seconds = 0, .node_name = last.node_name, .ranks = last.ranks});
    log.append(last);
  }
  const fs::path& path() const { return folder_.path; }

 private:
  test::TemporaryFolder folder_;
};

GpuSample gpu_of(const char* uuid, std::optional<double> kwh) {
  return {.uuid = uuid, .energy_j = kwh ? std::optional(*kwh * kKwh) : std::nullopt};
}

TEST_CASE("energy and device hours add up over attempts and nodes, shared devices once") {
  const Run run;
  run.add(0, 0,
          {.node_name = "a",
           .ranks = 2,
           .host = {.cpu_energy_j = 0.5 * kKwh},
           .gpus = {gpu_of("1", 1), gpu_of("2", 2)}});
  run.add(1, 0,
          {.node_name = "a",
           .ranks = 2,
           .host = {.cpu_energy_j = 0.25 * kKwh},
           .gpus = {gpu_of("1", 1)}});
  // A second launcher on the same machine samples the same CPUs and GPU.
  run.add(1, 1,
          {.node_name = "a",
           .ranks = 2,
           .host = {.cpu_energy_j = 0.2 * kKwh},
           .gpus = {gpu_of("1", 0.9)}});
  const RunEnergy energy = run_energy(run.path());
  CHECK(energy.device_hours == Approx(6));  // three times 2 ranks and an hour
  CHECK(*energy.gpu_kwh == Approx(4));
  CHECK(*energy.cpu_kwh == Approx(0.75));
  CHECK_FALSE(energy.memory_kwh.has_value());
  CHECK(*energy.kwh() == Approx(4.75));
  CHECK(energy.missing.empty());
}

TEST_CASE("cost and carbon follow from the rates") {
  const Run run;
  run.add(0, 0,
          {.node_name = "a",
           .ranks = 4,
           .host = {.cpu_energy_j = 0.2 * kKwh, .memory_energy_j = 0.05 * kKwh},
           .gpus = {gpu_of("1", 1)}});
  const recipe::Cost rates{.price = 2.5, .kwh_price = 0.4, .g_per_kwh = {}, .region = "FR"};
  CHECK(energy_text(run_energy(run.path()), rates) ==
        "  energy       1.25 kWh: GPUs 1, CPUs 0.2, memory 0.05\n"
        "  cost         10.50: 4 device hours 10.00, electricity 0.50\n"
        "  carbon       55 g CO2e\n");
  const nlohmann::ordered_json json = energy_json(run_energy(run.path()), rates);
  CHECK(json["kwh"].get<double>() == Approx(1.25));
  CHECK(json["cost"].get<double>() == Approx(10.5));
  CHECK(json["carbon_g"].get<double>() == Approx(55));
  CHECK(energy_text(run_energy(run.path()), std::nullopt) ==
        "  energy       1.25 kWh: GPUs 1, CPUs 0.2, memory 0.05\n");
}

TEST_CASE("energy that was not measured has no cost and no carbon, and is never 0") {
  const Run run;
  run.add(0, 0, {.node_name = "a", .ranks = 1, .no_rapl = "RAPL is absent"});
  const RunEnergy energy = run_energy(run.path());
  CHECK(energy_text(energy, std::nullopt).empty());
  CHECK(energy_text(energy, recipe::Cost{.price = 2, .kwh_price = 1, .g_per_kwh = 100}) ==
        "  energy       not available: no energy of the CPUs (RAPL is absent)\n"
        "  cost         2.00: 1 device hours 2.00\n");
  const nlohmann::ordered_json json = energy_json(energy, recipe::Cost{.kwh_price = 1});
  for (const char* const name : {"kwh", "gpu_kwh", "cpu_kwh", "cost", "carbon_g"}) {
    CAPTURE(name);
    CHECK(json[name].is_null());
  }
}

TEST_CASE("the text says that power was integrated, and which energy is missing") {
  const Run run;
  GpuSample gpu = gpu_of("1", 1);
  gpu.energy_from_power = true;
  run.add(0, 0,
          {.node_name = "a",
           .ranks = 1,
           .no_rapl = "RAPL is absent",
           .gpus = {gpu, gpu_of("2", std::nullopt)}});
  CHECK(energy_text(run_energy(run.path()), std::nullopt) ==
        "  energy       1 kWh: GPUs 1 (power integrated); a GPU reports neither energy nor power; "
        "no energy of the CPUs (RAPL is absent)\n");
}

TEST_CASE("large emissions are in kilograms") {
  CHECK(carbon_text(999) == "999 g CO2e");
  CHECK(carbon_text(12345) == "12.35 kg CO2e");
}

}  // namespace
}  // namespace scaletrain::observe
