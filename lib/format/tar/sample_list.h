// Lists of samples for `scaletrain data pack`: CSV with a header line, or one JSON object a line,
// with the columns `path` and `label`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

struct ListedSample {
  std::string path, label;  // label: a number or a class name
  std::int64_t line = 0;    // line number, counted from 1
  // Classes of a multi-label sample; `label` is empty then.
  std::vector<std::string> labels = {};
  bool has_list = false;

  bool operator==(const ListedSample&) const = default;
};

// Parses CSV (RFC 4180, with quoted fields); other columns are ignored. Throws core::DataError
// naming `place` and line for a missing column, a row of another length, an unterminated quote, an
// empty path or label, or a NUL.
std::vector<ListedSample> parse_csv_list(std::string_view text, const std::string& place);

// Parses JSON lines: `label` is a string, an integer from 0, or a list of either; other keys and
// empty lines are ignored. Same errors.
std::vector<ListedSample> parse_jsonl_list(std::string_view text, const std::string& place);

}  // namespace scaletrain::format
