// Lists of samples for `scaletrain data pack`: CSV with a header line, or one JSON object a line,
// with the columns `path` and `label`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

struct ListedSample {
  std::string path, label;  // the label as text: a number or a class's name
  std::int64_t line = 0;    // line number, counted from 1
  // Classes of a multi-label sample; `label` is empty then.
  std::vector<std::string> labels = {};
  bool has_list = false;

  bool operator==(const ListedSample&) const = default;
};

// RFC 4180: fields may stand in quotes, with "" for a quote; other columns are left alone. Throws
// core::DataError naming `place` and line: no such column, a row of another length, a quote that
// does not end, an empty path or label, a NUL.
std::vector<ListedSample> parse_csv_list(std::string_view text, const std::string& place);

// One object a line, `label` a string, a whole number from 0 or a list of either; other keys are
// left alone, and empty lines too. Same errors.
std::vector<ListedSample> parse_jsonl_list(std::string_view text, const std::string& place);

}  // namespace scaletrain::format
