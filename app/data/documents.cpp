#include "app/data/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text.h"
#include "lib/format/json_fields.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMaxTextBytes = std::int64_t{8} << 30;
constexpr std::size_t kMostFields = 10;  // in a message

// The text of the field that `flag` names.
const std::string& field_of(const nlohmann::json& object, const std::string& name, const char* flag,
                            const std::string& place) {
  const auto found = object.find(name);
  if (found != object.end() && found->is_string()) return found->get_ref<const std::string&>();
  std::vector<std::string> texts;
  for (const auto& [key, value] : object.items()) {
    if (value.is_string() && texts.size() < kMostFields) texts.push_back(core::escape_control(key));
  }
  throw core::DataError(
      place,
      fmt::format(R"({} field "{}")", found == object.end() ? "has no" : "holds no text in its",
                  core::escape_control(name)),
      texts.empty() ? "a line is an object with a text in it"
                    : fmt::format("{} names another; those with text here: {}", flag,
                                  fmt::join(texts, ", ")));
}

Document parse_line(std::string_view line, const std::string& place, const DocumentFields& names) {
  const nlohmann::json object = format::parse_object(line, place);
  Document document{.prompt = {}, .text = field_of(object, names.text, "--text-field", place)};
  if (!names.prompt.empty()) {
    document.prompt = field_of(object, names.prompt, "--prompt-field", place);
  }
  return document;
}

}  // namespace

std::vector<Document> read_documents(const std::string& path, const DocumentFields& fields,
                                     bool any_bytes) {
  const bool has_lines = path.ends_with(".jsonl");
  if (!has_lines && !fields.prompt.empty()) {
    throw core::UsageError("--prompt-field", path + " is no .jsonl and has no fields",
                           "leave the flag out, or write a .jsonl with a document on each line");
  }
  const std::string text = core::read_file(path, kMaxTextBytes, core::ExitCode::kData);
  if (!has_lines) {
    if (any_bytes || core::is_utf8(text)) return {{.prompt = {}, .text = text}};
    throw core::DataError(path, "is not UTF-8",
                          "convert it (iconv -t UTF-8), or choose --tokenizer bytes");
  }
  std::vector<Document> documents;
  std::string_view rest = text;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    documents.push_back(parse_line(line, fmt::format("{}:{}", path, number), fields));
  }
  return documents;
}

}  // namespace scaletrain::app
