#include "lib/format/sample_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/format/json_fields.h"
#include "lib/format/tar.h"

namespace scaletrain::format {
namespace {

[[noreturn]] void refuse_line(const std::string& place, std::int64_t line, const std::string& found,
                              const std::string& remedy) {
  throw core::DataError(fmt::format("{}:{}", place, line), found, remedy);
}

struct CsvRow {
  std::vector<std::string> fields;
  std::int64_t line = 1;  // on which it starts
};

// Rows of a CSV text one after the other.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& place) : text_(text), place_(place) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
  }

  // The next row that is not empty, or nullopt at the end.
  std::optional<CsvRow> next() {
    while (at_ < text_.size()) {
      CsvRow row;
      row.line = line_;
      do {
        row.fields.push_back(field());
      } while (take(','));
      const bool returned = take('\r');  // alone it ends a line too
      if (!take('\n') && !returned && at_ < text_.size()) {
        refuse_line(place_, line_, "text after a closing quote",
                    "write \"\" for a quote in quotes");
      }
      ++line_;
      if (row.fields.size() > 1 || !row.fields[0].empty()) return row;
    }
    return std::nullopt;
  }

 private:
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string field() {
    if (!take('"')) {
      const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
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

  std::string_view text_;
  const std::string& place_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

std::size_t column(const CsvRow& header, const std::string& name, const std::string& place) {
  const auto found = std::find(header.fields.begin(), header.fields.end(), name);
  if (found == header.fields.end()) {
    refuse_line(place, header.line, fmt::format("no column \"{}\"", name),
                "the first line names the columns: path,label");
  }
  return static_cast<std::size_t>(found - header.fields.begin());
}

void check_sample(const ListedSample& sample, const std::string& place) {
  if (sample.path.empty()) refuse_line(place, sample.line, "the path is empty", "name a file");
  const auto check_label = [&](const std::string& label) {
    if (label.empty()) {
      refuse_line(place, sample.line, "the label is empty", "a label is a class number or name");
    }
    if (sample.path.find('\0') != std::string::npos || label.find('\0') != std::string::npos) {
      refuse_line(place, sample.line, "a NUL character", "leave it out");
    }
  };
  if (!sample.has_list) check_label(sample.label);
  std::for_each(sample.labels.begin(), sample.labels.end(), check_label);
}

std::string label_text(const nlohmann::json& label, const std::string& place, std::int64_t line) {
  if (label.is_string()) return label.get<std::string>();
  if (label.is_number_unsigned()) return std::to_string(label.get<std::uint64_t>());
  refuse_line(place, line, "the label is neither text nor a whole number from 0",
              R"(write {"path": "a.jpg", "label": 3})");
}

}  // namespace

std::vector<ListedSample> parse_csv_list(std::string_view text, const std::string& place) {
  CsvReader reader(text, place);
  const auto header = reader.next();
  if (!header) throw core::DataError(place, "is empty", "the first line names path,label");
  const std::size_t path = column(*header, "path", place), label = column(*header, "label", place);
  std::vector<ListedSample> samples;
  while (auto row = reader.next()) {
    if (row->fields.size() != header->fields.size()) {
      refuse_line(place, row->line,
                  fmt::format("{} columns where the first line has {}", row->fields.size(),
                              header->fields.size()),
                  "put a field that holds a comma in quotes");
    }
    samples.push_back({std::move(row->fields[path]), std::move(row->fields[label]), row->line});
    check_sample(samples.back(), place);
  }
  return samples;
}

std::vector<ListedSample> parse_jsonl_list(std::string_view text, const std::string& place) {
  std::vector<ListedSample> samples;
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", place, line);
    nlohmann::json object;
    try {
      object = parse_object(row, where);
    } catch (const core::CheckpointError& error) {
      refuse_line(place, line, error.found(), R"(write {"path": "a.jpg", "label": 3})");
    }
    if (!object.contains("path") || !object["path"].is_string() || !object.contains("label")) {
      refuse_line(place, line, "no path and label", R"(write {"path": "a.jpg", "label": 3})");
    }
    ListedSample& sample = samples.emplace_back();
    sample.path = object["path"].get<std::string>();
    sample.line = line;
    const nlohmann::json& label = object["label"];
    sample.has_list = label.is_array();
    if (!sample.has_list) sample.label = label_text(label, place, line);
    for (std::size_t i = 0; i < label.size() && sample.has_list; ++i) {
      sample.labels.push_back(label_text(label[i], place, line));
    }
    check_sample(samples.back(), place);
  }
  return samples;
}

}  // namespace scaletrain::format
