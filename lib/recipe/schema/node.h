// JSON values that know where they were written, so that every mistake can be shown in its place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace scaletrain::recipe {

// A recipe file, or one --set.
struct SourceText {
  std::string name;       // as the person wrote it: "recipes/digits.json", "--set optimizer.lr"
  std::string pointer;    // JSON pointer that a --set sets; empty for a file
  int order = 0;          // messages are sorted by it, then by line
  bool has_lines = true;  // false for a --set
};

struct Node {
  using Array = std::vector<Node>;
  using Object = std::map<std::string, Node, std::less<>>;

  // The first is null.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value;
  std::shared_ptr<const SourceText> source;
  int line = 0;      // line of the value's beginning, from 1
  int key_line = 0;  // line of the member's name; 0 in a list

  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  const Object* object() const { return std::get_if<Object>(&value); }

  // The member `name` of an object, or nullptr.
  const Node* member(std::string_view name) const;

  // As in a message: 8.7, "text", true, null, a list, an object; long text is cut.
  std::string shown() const;
};

// `text` in JSON quotes with control characters escaped, cut to `most_bytes`, always UTF-8.
std::string in_quotes(std::string_view text, std::size_t most_bytes = 80);

// `pointer` + "/" + `key`, escaped as RFC 6901 says.
std::string child_pointer(const std::string& pointer, std::string_view key);

// The node at `path` below `tree`, or the deepest one on the way that is written down.
const Node& written_at(const Node& tree, std::initializer_list<const char*> path);

}  // namespace scaletrain::recipe
