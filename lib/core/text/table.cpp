#include "lib/core/text/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace scaletrain::core {

std::string text_table(const std::vector<std::vector<std::string>>& lines) {
  if (lines.empty()) return "";
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) row += fmt::format("{:{}}  ", line[i], widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string cell = cells[i];
    if (cell.find_first_of(",\"\r\n") != std::string::npos) {
      for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) {
        cell.insert(at, 1, '"');
      }
      cell.insert(0, 1, '"');
      cell += '"';
    }
    if (i > 0) text += ',';
    text += cell;
  }
  return text + "\r\n";
}

}  // namespace scaletrain::core
