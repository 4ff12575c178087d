#include "lib/core/text/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "lib/core/printable.h"

namespace scaletrain::core {
namespace {

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

// True for a text that a spreadsheet takes for a formula, with apostrophes in front of it or not:
// a cell with them keeps what it had before csv_cell(). Some take the full-width signs too.
bool is_computed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  if (is_number(text)) return false;
  for (const std::string_view sign :
       {"=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"}) {
    if (text.size() > sign.size() && text.starts_with(sign)) return true;
  }
  return false;
}

}  // namespace

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

std::string csv_cell(std::string_view text) {
  std::string cell = (is_computed(text) ? "'" : "") + printable_lines(text);
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) {
    cell.insert(at, 1, '"');
  }
  return '"' + cell + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return text + "\r\n";
}

std::string_view without_apostrophe(std::string_view cell) {
  if (cell.starts_with('\'') && is_computed(cell)) cell.remove_prefix(1);
  return cell;
}

}  // namespace scaletrain::core
