// MLPerf exporter: RUN/export/mlperf.log with a line ":::MLLOG {JSON}" for each event of a run.
//
// Keys are those of MLPerf Training: seed, global_batch_size, opt_name, opt_base_learning_rate,
// run_start, epoch_start, train_loss, eval_accuracy, eval_loss, epoch_stop, run_stop.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/track/exporter.h"

namespace scaletrain::track {

struct MlperfEvent {
  double time = 0;   // Unix seconds
  std::string type;  // "POINT_IN_TIME", "INTERVAL_START" or "INTERVAL_END"
  std::string key;
};

// Returns the line of an event, with its newline.
std::string mlperf_line(const MlperfEvent& event, const nlohmann::ordered_json& value,
                        const nlohmann::ordered_json& metadata);

std::unique_ptr<Exporter> make_mlperf(const ExportOptions& options);

}  // namespace scaletrain::track
