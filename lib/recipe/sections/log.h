// Logging of metrics, and the experiment trackers that they are exported to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct LogChoice {
  std::string_view name, help;
};

// Values of log.to; lib/track/exporters.h has a row for each.
inline constexpr std::array kTrackers{
    LogChoice{"tensorboard", "TensorBoard event files."},
    LogChoice{"csv", "One CSV table with a row for each record."},
    LogChoice{"prometheus", "Newest values for Prometheus, as a textfile and on log.port."},
    LogChoice{"wandb", "Weights & Biases run in offline mode, for `wandb sync`."},
    LogChoice{"mlflow", "MLflow run on the server that MLFLOW_TRACKING_URI names."},
    LogChoice{"trackio", "SQLite file that trackio shows."},
    LogChoice{"mlperf", "Log of MLPerf Training, with lines \":::MLLOG\"."},
};

// Values of log.events; lib/track/events/event.h derives events from the journal.
inline constexpr std::array kEvents{
    LogChoice{"start", "The job has started."},
    LogChoice{"checkpoint", "A checkpoint was saved."},
    LogChoice{"restart", "The job restarts after a failure or a change of its nodes."},
    LogChoice{"failure", "A rank or a node has failed."},
    LogChoice{"end", "The job has finished, failed for good or was stopped."},
};

struct Log {
  Duration every{Duration::Unit::kSteps, 10};
  std::vector<std::string> to{};            // trackers, each once; empty: metrics.jsonl only
  std::int64_t port = 0;                    // Prometheus, on 127.0.0.1; 0: no socket
  std::string textfile_folder = {};         // Prometheus textfiles, absolute; "": RUN/export
  std::optional<bool> images = {};          // nullopt: if a tracker shows images
  std::optional<Duration> histograms = {};  // in steps or epochs; nullopt: none
  std::string webhook = {};                 // URL or "env:NAME"; "": none
  std::string on_event = {};                // shell command; "": none
  std::vector<std::string> events{};        // sent to webhook and on_event; empty: all

  // True if rank 0 writes pictures of the first batch and of the worst errors.
  bool writes_images() const;
};

TypePtr describe(Log& value);

void check(const Log& log, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
