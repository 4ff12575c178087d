// Results of a run as named numbers: `runs` sorts by them, `compare` compares them, and `report`
// shows them first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

struct RunValue {
  std::string name;   // "val_top1", "loss", "samples_per_s"
  std::string label;  // for display: "val top-1", "loss", "samples/s"
  double value = 0;
  bool higher_is_better = false;
  std::optional<std::int64_t> step{};  // step of the validation or test
};

// In this order, as far as the run has them:
//   SPLIT_MEASURE   best value of each split and measure, validation first: "val_top1", "test_loss"
//   loss            of the last logged step
//   samples_per_s   median over the logged steps
//   step_flops      FLOPs of the model in the last step, all ranks
//   tflops_per_s    of a device, median over the logged steps
//   mfu             likewise, if the peak of the device is known
//   memory_bytes    highest peak of a rank
//   seconds         from the first to the last record of each attempt, summed
//   step, attempts  the last step, the number of starts
//   kwh, cost, carbon_g  measured energy, and what the recipe's rates make of it
std::vector<RunValue> run_results(const RunRecord& run);

// Returns the value of that name; nullptr if there is none.
const RunValue* find_value(const std::vector<RunValue>& values, const std::string& name);

// "top-1" for the measure "top1"; an unknown name is returned as it is.
std::string measure_label(const std::string& name);

// Label of a result by its name: "val top-1" for "val_top1", "memory" for "memory_bytes".
std::string value_label(const std::string& name);

// The value with its unit: "98.48 %", "0.1418", "1,144", "3m 12s", "1.14 GB".
std::string value_text(const std::string& name, double value);

// "2026-11-29 12:05" in the local time zone; "-" for 0.
std::string local_time(double unix_s);

// Earliest record, Unix seconds; nullopt: nothing was recorded.
std::optional<double> start_time(const RunRecord& run);

}  // namespace scaletrain::launcher
