// A map from names that the user chooses to objects with the same keys.
#pragma once

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {

template <class T>
class ObjectMap : public Type {
 public:
  using Describe = TypePtr (*)(T&);  // binds an Object to an item

  ObjectMap(std::map<std::string, T>& value, Describe describe)
      : value_(value), describe_(describe) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const Node::Object* const members = node.object();
    if (members == nullptr) return add_wrong_type(problems, node, pointer, "an object", *this);
    for (const auto& [name, member] : *members) {
      if (problems.full()) return;
      const std::string below = child_pointer(pointer, name);
      if (!is_plain_name(name)) {
        problems.add_at_key(member, below, in_quotes(name) + " cannot be a name",
                            fmt::format("use {}", kPlainName));
        continue;
      }
      describe_(value_[name])->read(member, below, problems);
    }
  }
  Json write() const override {
    if (value_.empty()) return {};
    Json result = Json::object();
    for (auto& [name, item] : value_) result[name] = describe_(item)->write();
    return result;
  }
  Json schema() const override {
    T item;
    return {{"type", "object"},
            {"propertyNames", {{"pattern", kPlainNamePattern}}},
            {"additionalProperties", describe_(item)->schema()}};
  }
  std::string phrase() const override {
    T item;
    return fmt::format("objects by their names; each {}", describe_(item)->phrase());
  }

 private:
  std::map<std::string, T>& value_;
  Describe describe_;
};

// Type of such a map; an empty map means that there is none.
template <class T>
TypePtr object_map(std::map<std::string, T>& value, typename ObjectMap<T>::Describe describe) {
  return std::make_unique<ObjectMap<T>>(value, describe);
}

}  // namespace scaletrain::recipe
