// Tables of cases in their short form and in their long one.
#pragma once

#include <cstdlib>
#include <string_view>
#include <vector>

namespace scaletrain::testing {

// Whether SCALETRAIN_LONG=1 asks for all cases.
inline bool is_long_form() {
  const char* const asked = std::getenv("SCALETRAIN_LONG");
  return asked != nullptr && std::string_view(asked) == "1";
}

// Every second row from `first` on, 0 or 1: between them two tests take all. The long form has all.
template <typename Row>
std::vector<Row> every_second(const std::vector<Row>& rows, std::size_t first) {
  if (is_long_form()) return rows;
  std::vector<Row> result;
  for (std::size_t i = first; i < rows.size(); i += 2) result.push_back(rows[i]);
  return result;
}

}  // namespace scaletrain::testing
