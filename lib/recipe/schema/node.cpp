#include "lib/recipe/schema/node.h"

#include <nlohmann/json.hpp>

#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::recipe {
namespace {

std::string dump(const nlohmann::json& value) { return core::printable(core::json_text(value)); }

}  // namespace

const Node* Node::member(std::string_view name) const {
  const Object* const members = object();
  if (members == nullptr) return nullptr;
  const auto found = members->find(name);
  return found == members->end() ? nullptr : &found->second;
}

std::string Node::shown() const {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return dump(*number);
  if (text() != nullptr) return in_quotes(*text());
  if (array() != nullptr) return "a list";
  return object() != nullptr ? "an object" : "null";
}

std::string in_quotes(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return dump(std::string(text));
  std::size_t end = most_bytes;
  // Not in the middle of a character: its further bytes are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return dump(std::string(text.substr(0, end)) + "...");
}

std::string child_pointer(const std::string& pointer, std::string_view key) {
  std::string result = pointer + "/";
  for (const char c : key) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

const Node& written_at(const Node& tree, std::initializer_list<const char*> path) {
  const Node* node = &tree;
  for (const char* key : path) {
    const Node* const next = node->member(key);
    if (next == nullptr) break;
    node = next;
  }
  return *node;
}

}  // namespace scaletrain::recipe
