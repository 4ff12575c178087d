// Tables that fit a terminal: columns that matter less are left out.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

using TableCells = std::vector<std::vector<std::string>>;  // the first line has the headings

// Width of standard output in columns if it is a terminal; 0 otherwise: no limit.
int output_columns();

// Width of core::text_table(table) without a column that has no heading, such as the cause of a
// failure: that one may continue on the next line of a terminal.
int table_columns(const TableCells& table);

// Removes columns by their heading, the first of `removable` first, until the table is at most
// `width` columns wide (0: no limit). Returns the headings that were removed.
std::vector<std::string> fit_table(TableCells& table, const std::vector<std::string>& removable,
                                   int width);

}  // namespace scaletrain::launcher
