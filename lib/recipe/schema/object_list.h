// A list of objects, each with the same keys.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {

template <class T>
class ObjectList : public Type {
 public:
  using Describe = TypePtr (*)(T&);  // binds an Object to an item

  ObjectList(std::vector<T>& value, Describe describe) : value_(value), describe_(describe) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const Node::Array* const items = node.array();
    if (items == nullptr) return add_wrong_type(problems, node, pointer, "a list", *this);
    if (items->empty()) return problems.add(node, pointer, "is an empty list", "use " + phrase());
    value_.assign(items->size(), T());
    for (std::size_t i = 0; i < items->size(); ++i) {
      describe_(value_[i])->read((*items)[i], child_pointer(pointer, std::to_string(i)), problems);
    }
  }
  Json write() const override {
    if (value_.empty()) return {};
    Json result = Json::array();
    for (T& item : value_) result.push_back(describe_(item)->write());
    return result;
  }
  Json schema() const override {
    return {{"type", "array"}, {"items", item_->schema()}, {"minItems", 1}};
  }
  std::string phrase() const override { return "a list; each item " + item_->phrase(); }
  const Type* item() const override { return item_.get(); }

 private:
  std::vector<T>& value_;
  Describe describe_;
  T scratch_{};  // bound to item_
  TypePtr item_ = describe_(scratch_);
};

// Type of such a list; an empty vector means that there is none.
template <class T>
TypePtr object_list(std::vector<T>& value, typename ObjectList<T>::Describe describe) {
  return std::make_unique<ObjectList<T>>(value, describe);
}

}  // namespace scaletrain::recipe
