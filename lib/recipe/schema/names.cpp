// One or several values of an enumeration.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {
namespace {

class Names : public Type {
 public:
  Names(std::vector<std::string>& value, NamedValues allowed)
      : value_(value), allowed_(std::move(allowed)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    value_.clear();
    read_one_or_more(node, pointer, *this, problems,
                     [&](const Node& one, const std::string& its_pointer) {
                       read_one(one, its_pointer, problems);
                     });
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override {
    const Json one = enum_schema(allowed_);
    const Json list{{"type", "array"}, {"items", one}, {"uniqueItems", true}};
    return {{"anyOf", {one, list}}};
  }
  std::string phrase() const override {
    return fmt::format("one of: \"{}\", or a list of them",
                       fmt::join(names_of(allowed_), "\", \""));
  }
  NamedValues values() const override { return allowed_; }

 private:
  void read_one(const Node& node, const std::string& pointer, Problems& problems) {
    const std::string* const name = read_text(node, pointer, *this, problems);
    if (name == nullptr) return;
    const std::vector<std::string> names = names_of(allowed_);
    if (std::find(names.begin(), names.end(), *name) == names.end()) {
      return problems.add(node, pointer, in_quotes(*name) + " is not a choice here",
                          "use " + phrase());
    }
    if (std::find(value_.begin(), value_.end(), *name) != value_.end()) {
      return problems.add(node, pointer, in_quotes(*name) + " occurs twice", "name it once");
    }
    value_.push_back(*name);
  }

  std::vector<std::string>& value_;
  NamedValues allowed_;
};

}  // namespace

TypePtr names(std::vector<std::string>& value, NamedValues allowed) {
  return std::make_unique<Names>(value, std::move(allowed));
}

}  // namespace scaletrain::recipe
