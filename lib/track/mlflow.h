// MLflow exporter: a run on the tracking server that MLFLOW_TRACKING_URI names, in the experiment
// MLFLOW_EXPERIMENT_NAME.
//
// The spool is metrics.jsonl itself: RUN/export/mlflow.json has the run's ID and how many records
// the server has, so that exports continue after them following an outage or a resume.
#pragma once

#include <memory>

#include "lib/storage/aws_settings.h"
#include "lib/track/exporter.h"
#include "lib/track/net/mlflow_client.h"

namespace scaletrain::track {

// `send` is for tests. Throws core::UsageError without a server's address.
std::unique_ptr<Exporter> make_mlflow_with(const ExportOptions& options,
                                           const storage::Variables& variables, SendHttp send);

std::unique_ptr<Exporter> make_mlflow(const ExportOptions& options);

}  // namespace scaletrain::track
