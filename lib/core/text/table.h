// Rows of cells for a person and for a spreadsheet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

// Aligns columns to their widest cell in bytes, two blanks apart. All lines must have equally many
// cells.
std::string text_table(const std::vector<std::vector<std::string>>& lines);

// Returns a cell of CSV (RFC 4180): control characters are printable, a cell with a comma, a quote
// or a line break is quoted, and a text that a spreadsheet would compute has an apostrophe in front
// (OWASP, CSV Injection): one that begins with = + - @, a tab or a line break, and is no number.
std::string csv_cell(std::string_view text);

// Returns a line of such cells.
std::string csv_line(const std::vector<std::string>& cells);

// Returns a cell as read from CSV without the apostrophe of csv_cell().
std::string_view without_apostrophe(std::string_view cell);

}  // namespace scaletrain::core
