// JSON values with their source positions, for error messages.
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

// Source of values: a recipe file or one --set.
struct SourceText {
  std::string name;       // as the user wrote it: "recipes/digits.json", "--set optimizer.lr"
  std::string pointer;    // JSON pointer of a --set; empty for a file
  int order = 0;          // sort key of messages, before the line
  bool has_lines = true;  // false for a --set
};

struct Node {
  using Array = std::vector<Node>;
  using Object = std::map<std::string, Node, std::less<>>;

  // The value; std::monostate is JSON's null.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value;
  std::shared_ptr<const SourceText> source;
  int line = 0;      // line where the value begins, from 1
  int key_line = 0;  // line of the member's name; 0 in a list

  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  const Object* object() const { return std::get_if<Object>(&value); }

  // Returns the member `name` of an object; nullptr if there is none.
  const Node* member(std::string_view name) const;

  // Returns the value for a message: 8.7, "text", true, null, a list, an object; long text is
  // shortened.
  std::string shown() const;
};

// Returns `text` in JSON quotes with escaped control characters, shortened to `most_bytes`, as
// valid UTF-8.
std::string in_quotes(std::string_view text, std::size_t most_bytes = 80);

// Returns `pointer` + "/" + `key`, escaped as in RFC 6901.
std::string child_pointer(const std::string& pointer, std::string_view key);

// Returns the node at `path` below `tree`, or its deepest ancestor that is present.
const Node& written_at(const Node& tree, std::initializer_list<const char*> path);

}  // namespace scaletrain::recipe
