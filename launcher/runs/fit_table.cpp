#include "launcher/runs/fit_table.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "lib/observe/terminal.h"

namespace scaletrain::launcher {

int output_columns() { return isatty(STDOUT_FILENO) == 1 ? observe::columns(STDOUT_FILENO) : 0; }

int table_columns(const TableCells& table) {
  constexpr std::size_t kGap = 2;
  std::size_t sum = 0;
  for (std::size_t i = 0; !table.empty() && i < table.front().size(); ++i) {
    if (table.front()[i].empty()) continue;
    std::size_t width = 0;
    for (const auto& line : table) width = std::max(width, line[i].size());
    sum += width + kGap;
  }
  return static_cast<int>(sum == 0 ? 0 : sum - kGap);
}

std::vector<std::string> fit_table(TableCells& table, const std::vector<std::string>& removable,
                                   int width) {
  std::vector<std::string> removed;
  for (const std::string& heading : removable) {
    if (width == 0 || table_columns(table) <= width) break;
    const auto found = std::find(table.front().begin(), table.front().end(), heading);
    if (found == table.front().end()) continue;
    const auto column = found - table.front().begin();
    for (auto& line : table) line.erase(line.begin() + column);
    removed.push_back(heading);
  }
  return removed;
}

}  // namespace scaletrain::launcher
