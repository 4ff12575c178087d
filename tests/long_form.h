// Tables of cases in their short form and in their long form.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
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

// A row of a table: the values that it shows, and what it costs beside other rows.
struct ShownRow {
  std::vector<std::string> values;
  double cost = 1;
};

// Returns `values` with each pair of them as a value of its own.
inline std::vector<std::string> with_pairs(std::vector<std::string> values) {
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = i + 1; k < count; ++k) values.push_back(values[i] + " & " + values[k]);
  }
  return values;
}

// Returns the numbers of a few rows, in their order, that show every value that a row of the table
// shows. Takes the row with the most new values for its cost until none is left, the first of
// equals: the same table gives the same rows. Returns all rows in the long form.
inline std::set<std::size_t> covering_rows(const std::vector<ShownRow>& rows) {
  std::set<std::size_t> chosen;
  if (is_long_form()) {
    for (std::size_t i = 0; i < rows.size(); ++i) chosen.insert(i);
    return chosen;
  }
  std::set<std::string> left;
  for (const ShownRow& row : rows) left.insert(row.values.begin(), row.values.end());
  while (!left.empty()) {
    std::size_t best = 0;
    double most = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double found = 0;
      for (const std::string& value : rows[i].values) found += left.contains(value) ? 1 : 0;
      if (found / rows[i].cost > most) {
        most = found / rows[i].cost;
        best = i;
      }
    }
    chosen.insert(best);
    for (const std::string& value : rows[best].values) left.erase(value);
  }
  return chosen;
}

}  // namespace scaletrain::testing
