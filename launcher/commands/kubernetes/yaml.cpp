#include "launcher/commands/kubernetes/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/text/lookup.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

// Words that a reader of YAML 1.1 takes for something else than text.
constexpr std::array<std::string_view, 10> kWords{"y",   "n",    "yes",   "no",   "on",
                                                  "off", "true", "false", "null", "nan"};

bool reads_as_itself(const std::string& text) {
  const auto is_letter = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  };
  const bool only_plain = std::all_of(text.begin(), text.end(), [&](char byte) {
    return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' ||
           byte == '.' || byte == '/';
  });
  if (text.empty() || !only_plain || !(is_letter(text[0]) || text[0] == '/')) return false;
  return std::find(kWords.begin(), kWords.end(), core::lower_case(text)) == kWords.end();
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// JSON's escapes are YAML's; these characters JSON leaves as they are and YAML does not.
std::string yaml_quoted(const Json& text) {
  std::string result = text.dump();
  replace_all(result, "\x7f", "\\x7f");
  for (int code = 0x80; code < 0xa0; ++code) {
    replace_all(result, std::string{'\xc2', static_cast<char>(code)},
                fmt::format("\\x{:02x}", code));
  }
  replace_all(result, "\xe2\x80\xa8", "\\u2028");
  replace_all(result, "\xe2\x80\xa9", "\\u2029");
  replace_all(result, "\xef\xbb\xbf", "\\ufeff");
  replace_all(result, "\xef\xbf\xbe", "\\ufffe");
  replace_all(result, "\xef\xbf\xbf", "\\uffff");
  return result;
}

// Lines of several, as a file has them, stay lines: a block that keeps its end.
bool is_block(const std::string& text) {
  return text.size() > 1 && text.ends_with('\n') && text[0] != ' ' && text[0] != '\n' &&
         std::all_of(text.begin(), text.end(),
                     [](char byte) { return byte == '\n' || (byte >= 0x20 && byte < 0x7f); });
}

std::string block_text(const std::string& text, const std::string& indent) {
  std::string result = text.ends_with("\n\n") ? "|+\n" : "|\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    if (end - begin > 1) result += indent;
    result += text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

std::string key_text(const std::string& text) {
  return reads_as_itself(text) ? text : yaml_quoted(Json(text));
}

void write_node(const Json& value, const std::string& indent, std::string& out);

// Writes the value after "key:" or "-"; `inner` is the indent of its contents.
void write_value(const Json& value, const std::string& inner, std::string& out) {
  if (value.is_structured()) {
    write_node(value, inner, out);
    return;
  }
  if (!value.is_string()) {
    out += value.dump() + "\n";
    return;
  }
  const auto& text = value.get_ref<const std::string&>();
  out += is_block(text) ? block_text(text, inner)
                        : (reads_as_itself(text) ? text : yaml_quoted(value)) + "\n";
}

void write_node(const Json& value, const std::string& indent, std::string& out) {
  const std::string inner = indent + "  ";
  if (value.is_array()) {
    for (const Json& item : value) {
      std::string text;
      write_value(item, inner, text);
      // The first line of an object is on the line of the dash.
      if (item.is_structured()) text.erase(0, inner.size());
      out.append(indent).append("- ").append(text);
    }
    return;
  }
  for (const auto& [name, item] : value.items()) {
    out += indent + key_text(name) + (item.is_structured() ? ":\n" : ": ");
    write_value(item, inner, out);
  }
}

}  // namespace

std::string to_yaml(const nlohmann::ordered_json& value) {
  std::string result;
  write_node(value, "", result);
  return result;
}

}  // namespace scaletrain::launcher
