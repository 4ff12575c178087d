// CSV exporter: RUN/export/metrics.csv with a row for each record and a column for each numeric
// field.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/track/exporter.h"

namespace scaletrain::track {

using Columns = std::vector<std::string>;

// Adds the fields of `record` that are not there yet, in the record's order.
void add_columns(const Record& record, Columns& columns);

// Returns the header row: "event", "split" and the columns.
std::string csv_header(const Columns& columns);

// Returns the row of `record`; a field that it does not have is empty.
std::string csv_row(const Record& record, const Columns& columns);

// Returns the rows of a file with `count` empty fields added to each, without its header.
std::string widen_rows(std::string_view file, std::size_t count);

std::unique_ptr<Exporter> make_csv(const ExportOptions& options);

}  // namespace scaletrain::track
