// trackio exporter: the SQLite file of the project "scaletrain", in $TRACKIO_DIR or
// RUN/export/trackio.
//
// A run has one row for each record, whose metrics have the names of TensorBoard's tags, and one
// row with the recipe as its configuration. Runs in the same file stay as they are.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "lib/track/exporter.h"

namespace scaletrain::track {

// Returns `time`, Unix seconds, as trackio writes it: "2026-11-29T02:00:00.250000+00:00".
std::string iso_time(double time);

// Throws core::Error if the file cannot be opened.
std::unique_ptr<Exporter> make_trackio_in(const ExportOptions& options,
                                          const std::filesystem::path& folder);

std::unique_ptr<Exporter> make_trackio(const ExportOptions& options);

}  // namespace scaletrain::track
