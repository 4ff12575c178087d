// Device samples of a run for `status`, `watch`, `explain run` and `report`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/runs/run_record.h"
#include "lib/observe/devices/run_energy.h"

namespace scaletrain::launcher {

// Rates in the "cost" section of a recipe; nullopt if it has none.
std::optional<recipe::Cost> cost_rates(const RunJson& recipe);

// The newest samples of a run, by node: a list of the objects in its device files.
RunJson newest_devices(const std::filesystem::path& run);

// A row for each node and each GPU in newest_devices():
//
//   "node 0", "host-a  CPU 34 %  memory 12.0/64.0 GB  disk 120 GB free  network 1.2 MB/s in, ..."
//   "gpu 0", "97 %  60.1/80.0 GB  650 W  71 C  1980 MHz  throttled: power cap"
//
// The name of a GPU's host is in front if there are several nodes.
struct DeviceRow {
  std::string name, text;
};
std::vector<DeviceRow> device_rows(const RunJson& devices);

// Rows of `explain run`, each with its newline: energy, cost and carbon, then what the GPUs did:
//
//   GPUs         92.1 % utilization, 640 W and at most 71 C; throttled 12 % of the time: power cap
std::string devices_text(const RunRecord& run);

// {"energy": observe::energy_json, "curves": [{"title", "step", "value"}]}; the curves are over the
// steps of training, so that they can be compared with others. Null if there is no sample.
RunJson devices_json(const RunRecord& run);

}  // namespace scaletrain::launcher
