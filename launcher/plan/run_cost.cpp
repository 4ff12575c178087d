#include "launcher/plan/run_cost.h"

#include "lib/core/plan/save_interval.h"

namespace scaletrain::launcher {
namespace {

constexpr double kSecondsOfHour = 3600, kWattsOfKilowatt = 1000;

}  // namespace

RunCost predict_cost(const RunRates& rates) {
  RunCost cost;
  if (rates.step_s > 0) {
    cost.samples_per_s = static_cast<double>(rates.global_batch) / rates.step_s;
    cost.data_bytes_per_s = cost.samples_per_s * rates.sample_bytes;
  }
  cost.seconds = static_cast<double>(rates.steps) * rates.step_s;
  cost.device_hours = cost.seconds / kSecondsOfHour * rates.devices;
  cost.kwh = cost.device_hours * rates.watts / kWattsOfKilowatt;
  if (rates.price || rates.price_of_kwh) {
    cost.money =
        rates.price.value_or(0) * cost.device_hours + rates.price_of_kwh.value_or(0) * cost.kwh;
  }
  if (rates.g_per_kwh && cost.kwh > 0) cost.carbon_g = *rates.g_per_kwh * cost.kwh;
  return cost;
}

SavePlan plan_saves(double bytes, double bytes_per_s, double stall_s, double mtbf_s) {
  return {.bytes = bytes,
          .write_s = bytes_per_s > 0 ? bytes / bytes_per_s : 0,
          .interval_s = core::best_interval(stall_s, mtbf_s)};
}

}  // namespace scaletrain::launcher
