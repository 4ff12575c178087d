// Cost of a run with a known step time: hours, device hours, energy, money, data and checkpoints.
#pragma once

#include <cstdint>
#include <optional>

namespace scaletrain::launcher {

struct RunRates {
  std::int64_t steps = 0;  // 0: unknown
  double step_s = 0;
  int devices = 1;
  std::int64_t global_batch = 0;
  double sample_bytes = 0;        // stored bytes of a sample; 0: unknown
  double watts = 0;               // of a device; 0: unknown
  std::optional<double> price{};  // per device and hour
  std::optional<double> price_of_kwh{};
  std::optional<double> g_per_kwh{};  // carbon intensity
};

struct RunCost {
  double seconds = 0;  // of all steps
  double device_hours = 0;
  double kwh = 0;  // at the devices' power limit
  std::optional<double> money{};
  std::optional<double> carbon_g{};  // likewise
  double samples_per_s = 0;
  double data_bytes_per_s = 0;  // of the whole job
};

RunCost predict_cost(const RunRates& rates);

struct SavePlan {
  double bytes = 0;       // a checkpoint of the whole model with its optimizer state
  double write_s = 0;     // until it is written
  double interval_s = 0;  // from one save to the next
};

// `bytes_per_s`: of the storage. The interval is that of Young and Daly for a save that holds
// training up for `stall_s` and failures every `mtbf_s` (lib/core/plan/save_interval.h).
SavePlan plan_saves(double bytes, double bytes_per_s, double stall_s, double mtbf_s);

}  // namespace scaletrain::launcher
