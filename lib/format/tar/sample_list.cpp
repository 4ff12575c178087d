#include "lib/format/tar/sample_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/error.h"
#include "lib/format/csv.h"
#include "lib/format/json_fields.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::format {
namespace {

[[noreturn]] void refuse_line(const std::string& place, std::int64_t line, const std::string& found,
                              const std::string& remedy) {
  throw core::DataError(fmt::format("{}:{}", place, line), found, remedy);
}

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
    check_width(*row, *header, place);
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
