// TensorBoard exporter: event files in RUN/export/tensorboard, written without TensorFlow.
//
// Scalars are the fields of metrics.jsonl; pictures and histograms are those of RUN/media and
// RUN/histograms.jsonl. The head of a file has the recipe as text and the hyperparameters.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/track/exporter.h"

namespace scaletrain::track {

// Returns the tag of a field: "Loss/train", "Accuracy/val", "lr"; "" for one that is no curve.
std::string scalar_tag(const Record& record, const std::string& field);

// Returns the hyperparameters of a recipe (keys that affect training), "optimizer.lr", with their
// numbers, texts and booleans. User, password and query of URLs are replaced by "***".
nlohmann::ordered_json hparams_of(const nlohmann::ordered_json& recipe);

std::unique_ptr<Exporter> make_tensorboard(const ExportOptions& options);

}  // namespace scaletrain::track
