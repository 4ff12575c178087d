// An object of a recipe: its keys, mutually exclusive keys, and reserved names.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {

struct Field {
  std::string name;
  TypePtr type;
  std::string help;
  bool required = false;
};

// Keys of which at most one, or exactly one, may be present.
struct Group {
  std::vector<std::string> names;
  bool needed = false;
};

class Object : public Type {
 public:
  // `phrase` as in Type. With a phrase, the reference shows the object in one row instead of one
  // row for each key.
  explicit Object(std::string phrase = "") : phrase_(std::move(phrase)) {}

  Object& add(std::string name, TypePtr type, std::string help);
  Object& require(std::string name, TypePtr type, std::string help);
  Object& at_most_one(std::vector<std::string> names);
  Object& exactly_one(std::vector<std::string> names);
  Object& at_least_one(std::vector<std::string> names);
  // Reserves names for later versions.
  Object& reserve(std::vector<std::string> names);
  // Allows a text as a short form of {key: text}.
  Object& set_short_for(std::string key);

  void read(const Node& node, const std::string& pointer, Problems& problems) override;
  Json write() const override;
  Json schema() const override;
  std::string phrase() const override;
  const Object* object() const override { return this; }
  std::string short_for() const override { return short_for_; }

  // Reads the keys that are present; unknown keys are an error unless `may_have_others`.
  void read_members(const Node& node, const std::string& pointer, Problems& problems,
                    bool may_have_others = false);

  bool is_one_row() const { return !phrase_.empty(); }
  const std::vector<Field>& fields() const { return fields_; }
  const Field* field(std::string_view name) const;
  // Returns the group of `name`, or nullptr.
  const Group* group(std::string_view name) const;

 private:
  // Returns the "oneOf" and "anyOf" schemas of its groups; empty without groups.
  Json groups_schema() const;
  void check_groups(const Node& node, const std::string& pointer, Problems& problems) const;
  void refuse_key(const Node& value, const std::string& pointer, const std::string& name,
                  Problems& problems) const;

  std::string phrase_;
  std::string short_for_;
  std::vector<Field> fields_;
  std::vector<Group> groups_;
  std::vector<std::string> some_of_;  // keys of at_least_one()
  std::vector<std::string> reserved_;
};

// Type of an optional object: `describe` binds an Object to the value.
template <class T>
class Optional : public Type {
 public:
  template <class Describe>
  Optional(std::optional<T>& value, const Describe& describe)
      : value_(value), scratch_(value.value_or(T{})), inner_(describe(scratch_)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    inner_->read(node, pointer, problems);
    value_ = scratch_;
  }
  Json write() const override { return value_ ? inner_->write() : Json(); }
  Json schema() const override { return inner_->schema(); }
  Json text_schema() const override { return inner_->text_schema(); }
  std::string phrase() const override { return inner_->phrase(); }
  const Object* object() const override { return inner_->object(); }
  std::string short_for() const override { return inner_->short_for(); }
  NamedValues values() const override { return inner_->values(); }

 private:
  std::optional<T>& value_;
  T scratch_;
  TypePtr inner_;
};

template <class T, class Describe>
TypePtr optional(std::optional<T>& value, const Describe& describe) {
  return std::make_unique<Optional<T>>(value, describe);
}

}  // namespace scaletrain::recipe
