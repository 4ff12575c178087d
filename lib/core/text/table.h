// Rows of cells for a person and for a spreadsheet.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::core {

// Aligns columns to their widest cell in bytes, two blanks apart. All lines must have equally many
// cells.
std::string text_table(const std::vector<std::vector<std::string>>& lines);

// Returns a line of CSV (RFC 4180): cells with a comma, a quote or a line break are quoted.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace scaletrain::core
