// Parses CSV (RFC 4180): fields may be quoted, with "" for a quote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

struct CsvRow {
  std::vector<std::string> fields;
  std::int64_t line = 1;  // line on which the row starts
};

// Reads the rows of a text in order; skips a byte order mark.
class CsvReader {
 public:
  // `place` names the file in messages; it must outlive the reader.
  CsvReader(std::string_view text, const std::string& place, char separator = ',');

  // Returns the next row that is not empty, or nullopt at the end. Throws core::DataError naming
  // the line for an unterminated quote or text after a closing quote.
  std::optional<CsvRow> next();

 private:
  bool take(char wanted);
  std::string field();

  std::string_view text_;
  const std::string& place_;
  std::string ends_;  // characters that end a field without quotes
  char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

// Throws core::DataError naming `place` and the row's line if it has another number of fields than
// `header`.
void check_width(const CsvRow& row, const CsvRow& header, const std::string& place);

}  // namespace scaletrain::format
