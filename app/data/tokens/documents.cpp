#include "app/data/tokens/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/data/files/parquet_file.h"
#include "app/data/files/text_file.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/format/csv.h"
#include "lib/format/json_fields.h"

namespace scaletrain::app {
namespace {

using Documents = std::vector<Document>;
using Json = nlohmann::json;

constexpr std::size_t kMostFields = 10;  // in a message

[[noreturn]] void refuse_field(const std::string& place, const std::string& found,
                               const std::string& name, const char* flag,
                               const std::vector<std::string>& others) {
  std::vector<std::string> shown;
  for (const std::string& other : others) {
    if (shown.size() < kMostFields) shown.push_back(core::printable(other));
  }
  throw core::DataError(place, fmt::format(R"({} field "{}")", found, core::printable(name)),
                        shown.empty()
                            ? "each line is a JSON object with a text field"
                            : fmt::format("{} names another field; fields with text here: {}", flag,
                                          fmt::join(shown, ", ")));
}

// The text of the field that `flag` names.
const std::string& field_of(const Json& object, const std::string& name, const char* flag,
                            const std::string& place) {
  const auto found = object.find(name);
  if (found != object.end() && found->is_string()) return found->get_ref<const std::string&>();
  std::vector<std::string> texts;
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) texts.push_back(key);
  }
  refuse_field(place, found == object.end() ? "has no" : "has no text in its", name, flag, texts);
}

Document document_of(const Json& object, const std::string& place, const DocumentFields& names) {
  Document document{.prompt = {}, .text = field_of(object, names.text, "--text-field", place)};
  if (!names.prompt.empty()) {
    document.prompt = field_of(object, names.prompt, "--prompt-field", place);
  }
  return document;
}

Documents read_lines(std::string_view rest, const std::string& path, const DocumentFields& names) {
  Documents documents;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    documents.push_back(document_of(format::parse_object(line, place), place, names));
  }
  return documents;
}

Documents read_list(std::string_view text, const std::string& path, const DocumentFields& names) {
  if (const std::string problem = format::json_problem(text); !problem.empty()) {
    throw core::DataError(path, problem, "the file is damaged: use another copy");
  }
  Documents documents;
  for (const Json& element : Json::parse(text)) {
    const std::string place = fmt::format("{}: element {}", path, documents.size());
    if (element.is_string() && names.prompt.empty() && !names.text_is_asked) {
      documents.push_back({.prompt = {}, .text = element.get<std::string>()});
    } else if (element.is_object()) {
      documents.push_back(document_of(element, place, names));
    } else {
      throw core::DataError(place, "is not an object with a text field",
                            R"(write a list of objects, [{"text": "..."}], or of texts)");
    }
  }
  return documents;
}

// One object over several lines is one document; else each line is one.
Documents read_json(std::string_view text, const std::string& path, const DocumentFields& names) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string_view body = text.substr(begin);
  if (body.starts_with('[')) return read_list(text, path, names);
  if (!Json::accept(body.substr(0, body.find('\n'))) && Json::accept(body)) {
    return {document_of(format::parse_object(body, path), path, names)};
  }
  return read_lines(text, path, names);
}

Documents read_csv(std::string_view text, const std::string& path, char separator,
                   const DocumentFields& names) {
  format::CsvReader reader(text, path, separator);
  const auto header = reader.next();
  if (!header) throw core::DataError(path, "is empty", "the first line names the columns");
  const auto column = [&](const std::string& name, const char* flag) {
    const auto found = std::find(header->fields.begin(), header->fields.end(), name);
    if (found == header->fields.end()) refuse_field(path, "has no", name, flag, header->fields);
    return static_cast<std::size_t>(found - header->fields.begin());
  };
  const std::size_t at = column(names.text, "--column");
  const std::size_t prompt = names.prompt.empty() ? at : column(names.prompt, "--prompt-field");
  Documents documents;
  while (auto row = reader.next()) {
    format::check_width(*row, *header, path);
    documents.push_back({.prompt = names.prompt.empty() ? "" : row->fields[prompt],
                         .text = std::move(row->fields[at])});
  }
  return documents;
}

std::string cell_text(const ParquetCell& cell, const std::string& name, const std::string& place) {
  using CellKind = ParquetCell::Kind;
  const bool has_text = cell.kind == CellKind::kText || cell.kind == CellKind::kBytes;
  if (has_text && core::is_utf8(cell.text)) return cell.text;
  throw core::DataError(place,
                        fmt::format(R"(its "{}" is {})", core::printable(name),
                                    cell.kind == Kind::kNull ? "null"
                                    : has_text               ? "not UTF-8"
                                                             : "no text"),
                        "--column names another column; remove rows without text");
}

Documents read_parquet(const std::string& path, const DocumentFields& names) {
  const std::vector<std::string> all = ParquetFile(path).columns();
  std::vector<std::string> wanted{names.text};
  if (!names.prompt.empty() && names.prompt != names.text) wanted.push_back(names.prompt);
  for (const std::string& name : wanted) {
    if (std::find(all.begin(), all.end(), name) != all.end()) continue;
    refuse_field(path, "has no", name, name == names.text ? "--column" : "--prompt-field", all);
  }
  ParquetFile file(path, wanted);
  const auto index = [&file](const std::string& name) {
    return static_cast<std::size_t>(std::find(file.columns().begin(), file.columns().end(), name) -
                                    file.columns().begin());
  };
  Documents documents;
  for (std::vector<ParquetCell> row; file.next(row);) {
    const std::string place = fmt::format("{}: row {}", path, documents.size());
    Document document{.prompt = {}, .text = cell_text(row[index(names.text)], names.text, place)};
    if (!names.prompt.empty()) {
      document.prompt = cell_text(row[index(names.prompt)], names.prompt, place);
    }
    documents.push_back(std::move(document));
  }
  return documents;
}

// Parquet files have their magic at both ends, and before the last the size of their footer: a text
// may begin and end with these letters.
bool is_parquet(const std::string& path) {
  constexpr std::string_view kMagic = "PAR1";
  std::string start(kMagic.size(), '\0'), end(2 * kMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), std::ssize(start));
  file.seekg(-std::ssize(end), std::ios::end);
  const std::int64_t before_end = file.tellg();
  file.read(end.data(), std::ssize(end));
  if (start != kMagic) return false;
  if (text_kind(path) == "parquet") return true;
  std::uint32_t footer = 0;  // little-endian, as the machine is
  std::memcpy(&footer, end.data(), sizeof footer);
  return end.ends_with(kMagic) && footer + std::ssize(kMagic) <= before_end;
}

Documents read_whole(std::string text, const std::string& path, const DocumentFields& names) {
  const bool has_prompt = !names.prompt.empty();
  if (has_prompt || names.text_is_asked) {
    throw core::UsageError(has_prompt ? "--prompt-field" : "--text-field",
                           path + " is one document and has no fields",
                           "leave the flag out, or write a .jsonl with a document on each line");
  }
  return {{.prompt = {}, .text = std::move(text)}};
}

}  // namespace

std::vector<Document> read_documents(const std::string& path, const DocumentFields& fields,
                                     const std::string& encoding) {
  if (is_parquet(path)) return read_parquet(path, fields);
  const std::string kind = text_kind(path);
  std::string text = read_text(path, encoding);
  if (kind == "parquet") {
    throw core::DataError(path, "is not a Parquet file",
                          "use another copy, or rename the file if it has another format");
  }
  if (kind == "jsonl" || kind == "ndjson") return read_lines(text, path, fields);
  if (kind == "json") return read_json(text, path, fields);
  if (kind == "csv") return read_csv(text, path, ',', fields);
  if (kind == "tsv") return read_csv(text, path, '\t', fields);
  return read_whole(std::move(text), path, fields);
}

}  // namespace scaletrain::app
