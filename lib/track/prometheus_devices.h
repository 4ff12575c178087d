// Newest values of a run's devices in the text format of Prometheus.
#pragma once

#include <span>
#include <string>

#include "lib/observe/devices/device_sample.h"

namespace scaletrain::track {

// Gauges scaletrain_host_NAME, scaletrain_gpu_NAME and scaletrain_rank_NAME for the fields of the
// samples, one of each node; `run` is the label of the run: run="digits". Totals begin at 0 in each
// attempt.
std::string prometheus_devices(const std::string& run,
                               std::span<const observe::DeviceSample> samples);

}  // namespace scaletrain::track
