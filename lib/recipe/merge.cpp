#include "lib/recipe/merge.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/core/text.h"
#include "lib/recipe/schema/json_text.h"

namespace scaletrain::recipe {
namespace {

constexpr int kOverrideOrder = 1 << 20;  // after every file

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

// The value of a --set: JSON, otherwise text. Lists, objects and quoted texts are meant as JSON, so
// their mistakes are reported rather than taken as text.
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

// The members of `node`, which becomes an object where it is none.
Node::Object& as_object(Node& node, const Type* type,
                        const std::shared_ptr<const SourceText>& source, const std::string& key) {
  if (node.text() != nullptr && type != nullptr && !type->short_for().empty()) {
    Node name = node;
    node.value = Node::Object{{type->short_for(), std::move(name)}};
  }
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
    throw core::RecipeError(source->name.substr(0, 100), "is too deep", "no recipe has such a key");
  }
  for (const std::string& step : steps) source->pointer = child_pointer(source->pointer, step);
  Node value = parse_value(text.substr(equals + 1), source);

  Node* node = &tree;
  const Object* object = &keys;
  const Type* type = &keys;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Node::Object& members = as_object(*node, type, source, steps[i]);
    const Group* const group = object == nullptr ? nullptr : object->group(steps[i]);
    if (group != nullptr && !value.is_null()) {
      for (const std::string& other : group->names) {
        if (other != steps[i]) members.erase(other);
      }
    }
    if (i + 1 == steps.size() && value.is_null()) {
      members.erase(steps[i]);
      return;
    }
    const Field* const field = object == nullptr ? nullptr : object->field(steps[i]);
    type = field == nullptr ? nullptr : field->type.get();
    object = type == nullptr ? nullptr : type->object();
    const auto [member, is_new] = members.try_emplace(steps[i]);
    node = &member->second;
    if (is_new) node->source = source;
  }
  *node = std::move(value);
}

}  // namespace

void merge(Node& base, Node patch) {
  if (patch.object() == nullptr || base.object() == nullptr) {
    // An object that replaces something else must lose its nulls too.
    if (patch.object() != nullptr) {
      Node empty = patch;
      empty.value = Node::Object();
      base = std::move(empty);
      return merge(base, std::move(patch));
    }
    base = std::move(patch);
    return;
  }
  auto& members = std::get<Node::Object>(base.value);
  for (auto& [name, value] : std::get<Node::Object>(patch.value)) {
    if (value.is_null()) {
      members.erase(name);
      continue;
    }
    merge(members[name], std::move(value));
  }
  // What is missing in the merged object is missing in the file that was named.
  base.source = patch.source;
  base.line = patch.line;
  base.key_line = patch.key_line;
}

void apply_overrides(Node& tree, const std::vector<std::string>& overrides, const Object& keys) {
  int order = 0;
  for (const std::string& text : overrides) apply_override(tree, text, order++, keys);
}

}  // namespace scaletrain::recipe
