#include "lib/recipe/schema/object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "lib/core/text/lookup.h"
#include "lib/recipe/schema/foreign_names.h"

namespace scaletrain::recipe {

Object& Object::add(std::string name, TypePtr type, std::string help) {
  fields_.push_back({std::move(name), std::move(type), std::move(help), false});
  return *this;
}

Object& Object::require(std::string name, TypePtr type, std::string help) {
  fields_.push_back({std::move(name), std::move(type), std::move(help), true});
  return *this;
}

Object& Object::at_most_one(std::vector<std::string> names) {
  groups_.push_back({std::move(names), false});
  return *this;
}

Object& Object::exactly_one(std::vector<std::string> names) {
  groups_.push_back({std::move(names), true});
  return *this;
}

Object& Object::at_least_one(std::vector<std::string> names) {
  some_of_ = std::move(names);
  return *this;
}

Object& Object::reserve(std::vector<std::string> names) {
  reserved_ = std::move(names);
  return *this;
}

Object& Object::set_short_for(std::string key) {
  short_for_ = std::move(key);
  return *this;
}

void Object::read(const Node& node, const std::string& pointer, Problems& problems) {
  if (node.text() != nullptr && !short_for_.empty()) {
    Node whole = node;
    whole.value = Node::Object{{short_for_, node}};
    return read_members(whole, pointer, problems);
  }
  if (node.object() == nullptr) {
    return add_wrong_type(problems, node, pointer, "an object", *this);
  }
  read_members(node, pointer, problems);
}

void Object::read_members(const Node& node, const std::string& pointer, Problems& problems,
                          bool may_have_others) {
  for (const Field& field : fields_) {
    const Node* const member = node.member(field.name);
    if (member != nullptr) {
      field.type->read(*member, child_pointer(pointer, field.name), problems);
    } else if (field.required) {
      problems.add(node, pointer, fmt::format("\"{}\" is missing", field.name),
                   fmt::format("add \"{}\": {}. {}", field.name, field.type->phrase(), field.help));
    }
  }
  check_groups(node, pointer, problems);
  if (may_have_others) return;
  for (const auto& [name, value] : *node.object()) {
    if (problems.full()) return;
    if (field(name) == nullptr) refuse_key(value, child_pointer(pointer, name), name, problems);
  }
}

void Object::check_groups(const Node& node, const std::string& pointer, Problems& problems) const {
  const auto is_there = [&](const std::string& name) { return node.member(name) != nullptr; };
  const auto add_none_of = [&](const std::vector<std::string>& names) {
    problems.add(node, pointer, fmt::format("none of \"{}\" is there", fmt::join(names, "\", \"")),
                 "add one of them");
  };
  if (!some_of_.empty() && std::none_of(some_of_.begin(), some_of_.end(), is_there)) {
    add_none_of(some_of_);
  }
  for (const Group& group : groups_) {
    std::vector<std::string> present;
    std::copy_if(group.names.begin(), group.names.end(), std::back_inserter(present), is_there);
    if (present.size() > 1) {
      problems.add_at_key(*node.member(present.back()), child_pointer(pointer, present.back()),
                          fmt::format("excludes \"{}\"", present.front()),
                          fmt::format("use one of: \"{}\"; null removes an inherited key",
                                      fmt::join(group.names, "\", \"")));
    } else if (present.empty() && group.needed) {
      add_none_of(group.names);
    }
  }
}

namespace {

// Converts "/data/val/urls" to "data.val.urls".
std::string dotted(std::string pointer) {
  pointer.erase(0, 1);
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return pointer;
}

// Returns what stands before the last dot; "" without one.
std::string parent_of(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

// Returns `here it is "lr"`, or `here it is optimizer.lr` from another object; "" if the key at
// `pointer` is not known from another framework.
std::string foreign_hint(const Object& keys, const std::string& pointer, const std::string& name) {
  const std::string ours = our_key(name);
  if (ours.empty()) return "";
  const std::string here = parent_of(dotted(pointer)), there = parent_of(ours);
  const std::string last = there.empty() ? ours : ours.substr(there.size() + 1);
  const bool is_source = there == "data.train" && here.starts_with("data.");
  const bool is_here = (here == there || is_source) && keys.field(last) != nullptr;
  if (here == there && !is_here) return "";  // a key of another model or optimizer
  return fmt::format("here it is {}", is_here ? in_quotes(last) : ours);
}

// Returns "here it is optimizer.lr" for a key of an object one level deeper.
std::string found_below(const std::vector<Field>& fields, const std::string& wanted) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> found;
  for (const Field& field : fields) {
    const Object* const inner = field.type->object();
    if (inner != nullptr && inner->field(wanted) != nullptr) {
      found.push_back(fmt::format("{}.{}", field.name, wanted));
    }
  }
  if (found.empty() || found.size() > kMostNamed) return "";
  return fmt::format("here it is {}", fmt::join(found, " or "));
}

}  // namespace

void Object::refuse_key(const Node& value, const std::string& pointer, const std::string& name,
                        Problems& problems) const {
  if (std::find(reserved_.begin(), reserved_.end(), name) != reserved_.end()) {
    return problems.add_at_key(value, pointer, "is reserved: not available in this version",
                               "leave it out");
  }
  const std::string reason = why_no_key(name);
  if (!reason.empty()) {
    return problems.add_at_key(value, pointer, in_quotes(name) + " is not a key here",
                               "leave it out: " + reason);
  }
  std::vector<std::string> known;
  for (const Field& field : fields_) known.push_back(field.name);
  std::string near = foreign_hint(*this, pointer, name);
  if (near.empty()) near = found_below(fields_, name);
  if (near.empty()) near = core::did_you_mean(name, known);
  problems.add_at_key(value, pointer, in_quotes(name) + " is not a key here",
                      near.empty() ? fmt::format("use one of: {}", fmt::join(known, ", ")) : near);
}

Json Object::write() const {
  Json result = Json::object();
  for (const Field& field : fields_) {
    Json value = field.type->write();
    if (!value.is_null()) result[field.name] = std::move(value);
  }
  return result;
}

Json Object::schema() const {
  Json result{{"type", "object"}, {"properties", Json::object()}};
  Json required = Json::array();
  for (const Field& field : fields_) {
    Json property = field.type->schema();
    property["description"] = field.help;
    const Json standard = field.type->write();
    if (!standard.is_null() && !field.required && group(field.name) == nullptr &&
        field.type->object() == nullptr) {
      property["default"] = standard;
    }
    result["properties"][field.name] = std::move(property);
    if (field.required) required.push_back(field.name);
  }
  if (!required.empty()) result["required"] = required;
  result["additionalProperties"] = false;
  const Json groups = groups_schema();
  if (short_for_.empty()) {
    result.update(groups);
    return result;
  }
  // Schema of either form: an editor offers the object's keys and the text's values.
  result.erase("type");
  result["anyOf"] = {field(short_for_)->type->text_schema(), {{"type", "object"}}};
  if (groups.empty()) return result;
  result["if"] = {{"type", "object"}};
  result["then"] = groups;
  return result;
}

Json Object::groups_schema() const {
  Json result = Json::object();
  for (const Group& group : groups_) {
    Json choices = Json::array();
    for (const std::string& name : group.names) choices.push_back({{"required", {name}}});
    if (!group.needed) choices.push_back({{"not", {{"anyOf", choices}}}});
    result["oneOf"] = std::move(choices);  // no object has two groups
  }
  for (const std::string& name : some_of_) result["anyOf"].push_back({{"required", {name}}});
  return result;
}

std::string Object::phrase() const {
  if (!phrase_.empty()) return phrase_;
  std::vector<std::string> known;
  for (const Field& field : fields_) known.push_back(field.name);
  return fmt::format("an object with keys of: {}", fmt::join(known, ", "));
}

const Field* Object::field(std::string_view name) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields_.end() ? nullptr : &*found;
}

const Group* Object::group(std::string_view name) const {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
    return std::find(group.names.begin(), group.names.end(), name) != group.names.end();
  });
  return found == groups_.end() ? nullptr : &*found;
}

}  // namespace scaletrain::recipe
