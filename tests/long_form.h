// Tables of cases in their short form and in their long form.
#pragma once

#include <cstdlib>
#include <string_view>
#include <vector>

namespace scaletrain::testing {

// Returns true if SCALETRAIN_LONG=1 asks for all cases.
inline bool is_long_form() {
  const char* const asked = std::getenv("SCALETRAIN_LONG");
  return asked != nullptr && std::string_view(asked) == "1";
}

// Returns every `n`th row from row `first` on: n tests that start at 0, 1, ... n - 1 cover all
// rows. Returns all rows in the long form.
template <typename Row>
std::vector<Row> every_nth(std::size_t n, const std::vector<Row>& rows, std::size_t first) {
  if (is_long_form()) return rows;
  std::vector<Row> result;
  for (std::size_t i = first; i < rows.size(); i += n) result.push_back(rows[i]);
  return result;
}

template <typename Row>
std::vector<Row> every_second(const std::vector<Row>& rows, std::size_t first) {
  return every_nth(2, rows, first);
}

template <typename Row>
std::vector<Row> every_third(const std::vector<Row>& rows, std::size_t first) {
  return every_nth(3, rows, first);
}

}  // namespace scaletrain::testing
