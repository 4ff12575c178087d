// Code that all types share: wrong types, texts, the schema of an enumeration.
#include "lib/recipe/schema/type.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace scaletrain::recipe {

Json Type::text_schema() const { return schema(); }

Json enum_schema(const NamedValues& values) {
  Json result{{"enum", names_of(values)}};
  Json helps = Json::array();
  bool has_help = false;
  for (const NamedValue& value : values) {
    helps.push_back(value.help);
    has_help = has_help || !value.help.empty();
  }
  if (has_help) result["enumDescriptions"] = std::move(helps);
  return result;
}

void add_wrong_type(Problems& problems, const Node& node, const std::string& pointer,
                    const std::string& noun, const Type& type) {
  problems.add(node, pointer, fmt::format("{} is not {}", node.shown(), noun),
               "use " + type.phrase());
}

const std::string* read_text(const Node& node, const std::string& pointer, const Type& type,
                             Problems& problems) {
  const std::string* const text = node.text();
  if (text == nullptr) {
    add_wrong_type(problems, node, pointer, "a text", type);
    return nullptr;
  }
  // A NUL would truncate a path, a newline would forge a line of a log.
  const bool has_control = std::any_of(text->begin(), text->end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (text->empty() || has_control) {
    problems.add(node, pointer,
                 text->empty() ? "is empty" : in_quotes(*text) + " has control characters",
                 "use " + type.phrase());
    return nullptr;
  }
  return text;
}

void read_one_or_more(
    const Node& node, const std::string& pointer, const Type& type, Problems& problems,
    const std::function<void(const Node& one, const std::string& its_pointer)>& read_one) {
  if (node.text() != nullptr) return read_one(node, pointer);
  const Node::Array* const items = node.array();
  if (items == nullptr) {
    return add_wrong_type(problems, node, pointer, "a text or a list", type);
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    read_one((*items)[i], child_pointer(pointer, std::to_string(i)));
  }
}

}  // namespace scaletrain::recipe
