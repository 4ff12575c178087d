#include "lib/observe/devices/run_energy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace scaletrain::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsOfHour = 3600, kJoulesOfKwh = 3.6e6;

// The largest total of each owner: several launchers may sample one device in an attempt.
class Totals {
 public:
  void add(int attempt, const std::string& owner, const std::optional<double>& joules) {
    if (!joules) return;
    auto& known = totals_[{attempt, owner}];
    known = std::max(known, *joules);
  }
  std::optional<double> kwh() const {
    if (totals_.empty()) return std::nullopt;
    double sum = 0;
    for (const auto& [owner, joules] : totals_) sum += joules;
    return sum / kJoulesOfKwh;
  }

 private:
  std::map<std::pair<int, std::string>, double> totals_;
};

std::string energy_row(std::string_view name, std::string_view text) {
  return fmt::format("  {:<12} {}\n", name, text);
}

std::optional<double> sum_of_known(const std::vector<std::optional<double>>& values) {
  std::optional<double> sum;
  for (const auto& value : values) {
    if (value) sum = sum.value_or(0) + *value;
  }
  return sum;
}

std::string measured_text(const RunEnergy& energy) {
  const auto kwh = energy.kwh();
  if (!kwh) return fmt::format("not available: {}", fmt::join(energy.missing, "; "));
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, const std::optional<double>& value) {
    if (value) parts.push_back(fmt::format("{} {:.3g}", name, *value));
  };
  add("GPUs", energy.gpu_kwh);
  add("CPUs", energy.cpu_kwh);
  add("memory", energy.memory_kwh);
  std::string text = fmt::format("{:.3g} kWh: {}", *kwh, fmt::join(parts, ", "));
  if (energy.from_power) text += " (power integrated)";
  if (!energy.missing.empty()) text += fmt::format("; {}", fmt::join(energy.missing, "; "));
  return text;
}

std::string cost_text(const RunEnergy& energy, const RunBill& bill) {
  std::vector<std::string> parts;
  if (bill.devices) {
    parts.push_back(fmt::format("{:.3g} device hours {:.2f}", energy.device_hours, *bill.devices));
  }
  if (bill.electricity) parts.push_back(fmt::format("electricity {:.2f}", *bill.electricity));
  return fmt::format("{:.2f}: {}", *bill.money(), fmt::join(parts, ", "));
}

template <class Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::optional<double> RunEnergy::kwh() const {
  return sum_of_known({gpu_kwh, cpu_kwh, memory_kwh});
}

std::optional<double> RunBill::money() const { return sum_of_known({devices, electricity}); }

std::string carbon_text(double grams) {
  constexpr double kGramsOfKilogram = 1000;
  return grams < kGramsOfKilogram ? fmt::format("{:.3g} g CO2e", grams)
                                  : fmt::format("{:.4g} kg CO2e", grams / kGramsOfKilogram);
}

RunEnergy run_energy(const std::filesystem::path& run) {
  RunEnergy energy;
  Totals gpus, cpus, memory;
  std::set<std::string> missing;
  for (const DeviceFile& file : device_files(run)) {
    const std::vector<DeviceSample> ends = first_and_last_sample(file.path);
    if (ends.empty()) continue;
    const DeviceSample &first = ends.front(), &last = ends.back();
    energy.device_hours += (last.time - first.time + first.seconds) / kSecondsOfHour * last.ranks;
    cpus.add(file.attempt, last.node_name, last.host.cpu_energy_j);
    memory.add(file.attempt, last.node_name, last.host.memory_energy_j);
    if (!last.no_rapl.empty()) missing.insert("no energy of the CPUs (" + last.no_rapl + ")");
    if (!last.no_gpus.empty()) missing.insert("no energy of GPUs (" + last.no_gpus + ")");
    for (const GpuSample& gpu : last.gpus) {
      gpus.add(file.attempt, gpu.uuid, gpu.energy_j);
      energy.from_power = energy.from_power || gpu.energy_from_power;
      if (!gpu.energy_j) missing.insert("a GPU reports neither energy nor power");
    }
  }
  energy.gpu_kwh = gpus.kwh();
  energy.cpu_kwh = cpus.kwh();
  energy.memory_kwh = memory.kwh();
  energy.missing.assign(missing.begin(), missing.end());
  return energy;
}

RunBill bill_of(const RunEnergy& energy, const std::optional<recipe::Cost>& rates) {
  RunBill bill;
  if (!rates) return bill;
  if (rates->price) bill.devices = *rates->price * energy.device_hours;
  const std::optional<double> kwh = energy.kwh();
  if (kwh && rates->kwh_price) bill.electricity = *rates->kwh_price * *kwh;
  if (const auto intensity = rates->carbon_intensity(); kwh && intensity) {
    bill.carbon_g = *intensity * *kwh;
  }
  return bill;
}

std::string energy_text(const RunEnergy& energy, const std::optional<recipe::Cost>& rates) {
  std::string text;
  if (energy.kwh() || (rates && !energy.missing.empty()))
    text += energy_row("energy", measured_text(energy));
  const RunBill bill = bill_of(energy, rates);
  if (bill.money()) text += energy_row("cost", cost_text(energy, bill));
  if (bill.carbon_g) text += energy_row("carbon", carbon_text(*bill.carbon_g));
  return text;
}

Json energy_json(const RunEnergy& energy, const std::optional<recipe::Cost>& rates) {
  const RunBill bill = bill_of(energy, rates);
  return {{"device_hours", energy.device_hours},
          {"kwh", json_or_null(energy.kwh())},
          {"gpu_kwh", json_or_null(energy.gpu_kwh)},
          {"cpu_kwh", json_or_null(energy.cpu_kwh)},
          {"memory_kwh", json_or_null(energy.memory_kwh)},
          {"from_power", energy.from_power},
          {"missing", energy.missing},
          {"cost", json_or_null(bill.money())},
          {"device_cost", json_or_null(bill.devices)},
          {"electricity_cost", json_or_null(bill.electricity)},
          {"carbon_g", json_or_null(bill.carbon_g)}};
}

}  // namespace scaletrain::observe
