#include "lib/recipe/merge.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/recipe/schema/json_text.h"

namespace scaletrain::recipe {
namespace {

constexpr int kOverrideOrder = 1 << 20;  // after all files

std::vector<std::string> split_at_dots(const std::string& path) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = path.find('.', begin);
    result.push_back(path.substr(begin, dot - begin));
    if (dot == std::string::npos) return result;
    begin = dot + 1;
  }
}

// Returns the value of a --set: JSON if it is valid JSON, otherwise text. Text that starts like a
// list, object or string must be valid JSON, so that mistakes in it are reported.
Node parse_value(const std::string& text, const std::shared_ptr<const SourceText>& source) {
  const bool is_meant_as_json =
      !text.empty() && (text[0] == '{' || text[0] == '[' || text[0] == '"');
  try {
    if (!text.empty()) return parse_json_text(text, source);
  } catch (const core::RecipeError&) {
    if (is_meant_as_json) throw;
  }
  if (!core::is_utf8(text)) {
    throw core::RecipeError(source->name, in_quotes(text) + " is not UTF-8", "use UTF-8");
  }
  Node node;
  node.value = text;
  node.source = source;
  return node;
}

// Expands a text that is short for an object.
void write_out(Node& node, const Type* type) {
  if (node.text() == nullptr || type == nullptr || type->short_for().empty()) return;
  Node name = node;
  node.value = Node::Object{{type->short_for(), std::move(name)}};
}

// Removes the members that `name` excludes, except the ones in `kept`.
void erase_excluded(Node::Object& members, const std::string& name, const Object* object,
                    const Node::Object& kept) {
  const Group* const group = object == nullptr ? nullptr : object->group(name);
  if (group == nullptr) return;
  for (const std::string& other : group->names) {
    if (other != name && !kept.contains(other)) members.erase(other);
  }
}

const Type* type_of(const Object* object, const std::string& name) {
  const Field* const field = object == nullptr ? nullptr : object->field(name);
  return field == nullptr ? nullptr : field->type.get();
}

void merge_as(Node& base, Node patch, const Type* type) {
  if (patch.object() == nullptr) {
    base = std::move(patch);
    return;
  }
  write_out(base, type);
  // Nulls must also be removed from an object that replaces another kind of value.
  if (base.object() == nullptr) base.value = Node::Object();
  auto& members = std::get<Node::Object>(base.value);
  auto& changes = std::get<Node::Object>(patch.value);
  const Object* const object = type == nullptr ? nullptr : type->object();
  for (const auto& [name, value] : changes) {
    if (!value.is_null()) erase_excluded(members, name, object, changes);
  }
  for (auto& [name, value] : changes) {
    if (value.is_null()) {
      members.erase(name);
    } else {
      merge_as(members[name], std::move(value), type_of(object, name));
    }
  }
  // An error about a missing key names the file that the user gave.
  base.source = patch.source;
  base.line = patch.line;
  base.key_line = patch.key_line;
}

// Returns the members of `node`, which becomes an object if it is none.
Node::Object& as_object(Node& node, const Type* type,
                        const std::shared_ptr<const SourceText>& source, const std::string& key) {
  write_out(node, type);
  if (node.is_null()) {
    node.value = Node::Object();
    node.source = source;
  }
  if (node.object() == nullptr) {
    throw core::RecipeError(source->name,
                            fmt::format("{} has no key {}", node.shown(), in_quotes(key)),
                            "set the whole value");
  }
  return std::get<Node::Object>(node.value);
}

void apply_override(Node& tree, const std::string& text, int order, const Object& keys) {
  const std::size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  auto source = std::make_shared<SourceText>();
  source->name = "--set " + (core::is_utf8(path) ? path : in_quotes(path));
  source->order = kOverrideOrder + order;
  source->has_lines = false;
  if (equals == std::string::npos || equals == 0 || !core::is_utf8(path)) {
    throw core::RecipeError(source->name, "is not KEY=VALUE",
                            "write for instance --set optimizer.lr=0.1");
  }
  const std::vector<std::string> steps = split_at_dots(path);
  if (steps.size() > kMaxDepth) {
    throw core::RecipeError(source->name.substr(0, 100), "is nested too deeply",
                            "no recipe has such a key");
  }
  for (const std::string& step : steps) source->pointer = child_pointer(source->pointer, step);
  Node value = parse_value(text.substr(equals + 1), source);

  Node* node = &tree;
  const Object* object = &keys;
  const Type* type = &keys;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Node::Object& members = as_object(*node, type, source, steps[i]);
    if (!value.is_null()) erase_excluded(members, steps[i], object, {});
    if (i + 1 == steps.size() && value.is_null()) {
      members.erase(steps[i]);
      return;
    }
    type = type_of(object, steps[i]);
    object = type == nullptr ? nullptr : type->object();
    const auto [member, is_new] = members.try_emplace(steps[i]);
    node = &member->second;
    if (is_new) node->source = source;
  }
  *node = std::move(value);
}

}  // namespace

void merge(Node& base, Node patch, const Object& keys) { merge_as(base, std::move(patch), &keys); }

void apply_overrides(Node& tree, const std::vector<std::string>& overrides, const Object& keys) {
  int order = 0;
  for (const std::string& text : overrides) apply_override(tree, text, order++, keys);
}

}  // namespace scaletrain::recipe
