// Weights & Biases exporter: offline runs in RUN/export/wandb, which `wandb sync` uploads.
//
// Each attempt of a run is a folder offline-run-TIME-ID of its own with the same run ID; a later
// one resumes the run at its first step.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/track/exporter.h"
#include "lib/track/wandb_file.h"

namespace scaletrain::track {

// Returns the keys of a recipe with their values as JSON. User, password and query of URLs are
// replaced by "***".
JsonByKey wandb_config(const nlohmann::ordered_json& recipe);

std::unique_ptr<Exporter> make_wandb(const ExportOptions& options);

}  // namespace scaletrain::track
