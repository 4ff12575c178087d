// Table of exporters: one row for each name of log.to (lib/recipe/sections/log.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "lib/track/exporter.h"

namespace scaletrain::track {

struct ExporterRow {
  std::string_view name;
  std::unique_ptr<Exporter> (*make)(const ExportOptions& options);  // throws core::Error
  std::size_t batch = 1024;                                         // records of one write
  // A later export of the run sends what this one could not: nothing is lost.
  bool resumes = false;
  bool shows_media = false;  // it gets pictures and histograms too
};

std::span<const ExporterRow> exporters();

// Throws core::UsageError for a name without a row.
const ExporterRow& find_exporter(std::string_view name);

}  // namespace scaletrain::track
