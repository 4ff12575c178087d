// Rows of cells for a person and for a spreadsheet.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::core {

// All lines have as many cells; columns are as wide as their widest cell in bytes, two blanks
// apart.
std::string text_table(const std::vector<std::vector<std::string>>& lines);

// RFC 4180: a cell is quoted where a comma, a quote or a line's end is in it.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace scaletrain::core
