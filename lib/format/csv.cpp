#include "lib/format/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"

namespace scaletrain::format {
namespace {

[[noreturn]] void refuse_line(const std::string& place, std::int64_t line, const std::string& found,
                              const std::string& remedy) {
  throw core::DataError(fmt::format("{}:{}", place, line), found, remedy);
}

}  // namespace

CsvReader::CsvReader(std::string_view text, const std::string& place, char separator)
    : text_(text), place_(place), ends_{separator, '\r', '\n'}, separator_(separator) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
}

std::optional<CsvRow> CsvReader::next() {
  while (at_ < text_.size()) {
    CsvRow row;
    row.line = line_;
    do {
      row.fields.push_back(field());
    } while (take(separator_));
    const bool returned = take('\r');  // a single CR also ends a line
    if (!take('\n') && !returned && at_ < text_.size()) {
      refuse_line(place_, line_, "text after a closing quote", "write \"\" for a quote in quotes");
    }
    ++line_;
    if (row.fields.size() > 1 || !row.fields[0].empty()) return row;
  }
  return std::nullopt;
}

bool CsvReader::take(char wanted) {
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

std::string CsvReader::field() {
  if (!take('"')) {
    const std::size_t end = std::min(text_.find_first_of(ends_, at_), text_.size());
    const std::string_view plain = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(plain);
  }
  std::string value;
  const std::int64_t first_line = line_;
  while (true) {
    const std::size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) {
      refuse_line(place_, first_line, "a quote that does not end", "close it");
    }
    const std::string_view part = text_.substr(at_, end - at_);
    line_ += std::count(part.begin(), part.end(), '\n');
    value += part;
    at_ = end + 1;
    if (!take('"')) return value;
    value += '"';
  }
}

void check_width(const CsvRow& row, const CsvRow& header, const std::string& place) {
  if (row.fields.size() == header.fields.size()) return;
  refuse_line(place, row.line,
              fmt::format("{} columns where the first line has {}", row.fields.size(),
                          header.fields.size()),
              "put a field that holds a comma in quotes");
}

}  // namespace scaletrain::format
