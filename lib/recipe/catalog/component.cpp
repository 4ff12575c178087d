#include "lib/recipe/catalog/component.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/core/printable.h"
#include "lib/core/text/lookup.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/foreign_names.h"
#include "lib/recipe/schema/json_text.h"

namespace scaletrain::recipe {
namespace {

// Type of one key of a row, bound to `value`.
TypePtr option_type(Component::Value& value, const Option& option) {
  if (auto* whole = std::get_if<std::int64_t>(&value)) return integer(*whole, option.range);
  if (auto* real = std::get_if<double>(&value)) return number(*real, option.range);
  if (auto* text = std::get_if<std::string>(&value)) {
    return option.is_path() ? path(*text) : choice(*text, option.allowed);
  }
  if (auto* list = std::get_if<std::vector<double>>(&value)) return numbers(*list, option.range);
  return flag(std::get<bool>(value));
}

void add_row_keys(Object& keys, Component& value, const Row& row) {
  for (const Option& option : row.options) {
    TypePtr type = option_type(value.options.at(option.key), option);
    if (option.is_required()) {
      keys.require(option.key, std::move(type), option.help);
    } else {
      keys.add(option.key, std::move(type), option.help);
    }
  }
}

// Returns the value of `key`; if it is not written, the object that could have it.
const Node& value_at(const Node& node, const std::string& key) {
  const Node* const member = node.member(key);
  return member == nullptr ? node : *member;
}

class Name : public Type {
 public:
  Name(Component& value, const List& list) : value_(value), list_(list) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const name = read_text(node, pointer, *this, problems);
    if (name == nullptr) return;
    const Row* const row = list_.find(*name);
    if (row != nullptr) return choose(value_, *row);
    const std::string near = near_name(*name);
    std::string remedy = near.empty() ? "use " + phrase() : near;
    if (!list_.missing.empty()) {
      remedy += fmt::format("; a worker of your own has a list beside it, and {} is missing",
                            core::printable(list_.missing));
    }
    problems.add(node, pointer, fmt::format("{} is not {}", in_quotes(*name), list_.kind), remedy);
  }
  Json write() const override { return value_.name.empty() ? Json() : Json(value_.name); }
  Json schema() const override { return enum_schema(list_.values()); }
  std::string phrase() const override {
    return fmt::format("one of: {}", fmt::join(list_.names(), ", "));
  }

 private:
  // Returns `did you mean "vit_small"?`, also for names of other frameworks; "" if no name is
  // similar.
  std::string near_name(const std::string& name) const {
    const std::string ours = our_value(list_.kind, name);
    const bool is_other_case = core::nearest(name, list_.names()) == core::lower_case(name);
    if (ours.empty() || is_other_case) return core::did_you_mean(name, list_.names());
    return fmt::format("did you mean \"{}\"?", ours);
  }

  Component& value_;
  const List& list_;
};

class ComponentType : public Type {
 public:
  ComponentType(Component& value, const List& list, CommonKeys common)
      : value_(value), list_(list), common_(std::move(common)) {
    const Row* const row = list_.find(value_.name);
    if (row != nullptr && value_.options.empty()) choose(value_, *row);
    add_common_keys(common_keys_, value_.name.empty());
  }

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    Node whole = node;
    if (node.text() != nullptr) whole.value = Node::Object{{"name", node}};
    if (whole.object() == nullptr) {
      return add_wrong_type(problems, node, pointer, fmt::format("the name of {}", list_.kind),
                            *this);
    }
    const Node* const name = whole.member("name");
    // The keys of a row are known only if the row is.
    bool is_known = name == nullptr && !value_.name.empty();
    if (name != nullptr) {
      // A text has no "/name" below it.
      const std::string place = node.text() != nullptr ? pointer : child_pointer(pointer, "name");
      value_.name.clear();
      Name(value_, list_).read(*name, place, problems);
      is_known = !value_.name.empty();
    }
    Object keys;
    describe_keys(keys, value_.name.empty() && name == nullptr);
    keys.read_members(whole, pointer, problems, !is_known);
    if (is_known && problems.none_under(pointer)) check_rules(whole, pointer, problems);
  }

  Json write() const override {
    if (value_.name.empty()) return {};
    Object keys;
    describe_keys(keys, false);
    return keys.write();
  }

  // An editor offers all names at once, and after a name exactly the keys of its row. Unlike the
  // branches of an anyOf, this requires no other key.
  Json schema() const override {
    const bool name_is_required = value_.name.empty();
    Json result{{"properties", {{"name", enum_schema(list_.values())}}}};
    result["properties"]["name"]["description"] = name_help();
    if (name_is_required) {
      result["required"] = {"name"};
    } else {
      result["allOf"].push_back({{"if", {{"type", "object"}, {"not", {{"required", {"name"}}}}}},
                                 {"then", schema_of(*list_.find(value_.name))}});
    }
    for (const Row& row : list_.rows) {
      const Json named{{"properties", {{"name", {{"const", row.name}}}}}};
      Json condition{{"type", "object"}, {"required", {"name"}}};
      condition.update(named);
      result["allOf"].push_back({{"if", std::move(condition)}, {"then", schema_of(row)}});
    }
    const Json text = text_schema();
    if (text.empty()) {
      result["type"] = "object";
    } else {
      result["anyOf"] = {text, {{"type", "object"}}};
    }
    return result;
  }
  // Schema of names that are short for an object without other keys. If there is a default, all
  // names are listed, and reading refuses those that need more keys.
  Json text_schema() const override {
    NamedValues complete;
    std::vector<std::string> incomplete;
    for (const Row& row : list_.rows) {
      const Json required = schema_of(row).value("required", Json::array());
      const bool needs_more = required.size() > (value_.name.empty() ? 1 : 0);
      if (needs_more) incomplete.push_back(row.name);
      if (!needs_more) complete.emplace_back(row.name, row.help);
    }
    if (complete.empty()) return Json::object();
    if (value_.name.empty() || incomplete.empty()) return enum_schema(complete);
    Json result = enum_schema(list_.values());
    result["not"] = {{"enum", incomplete}};
    return result;
  }

  std::string phrase() const override {
    return fmt::format("{}, {}", list_.kind, Name(value_, list_).phrase());
  }
  const Object* object() const override { return &common_keys_; }
  std::string short_for() const override { return "name"; }
  const List* list() const override { return &list_; }

 private:
  std::string name_help() const {
    return fmt::format("Name of the {}.", list_.kind.substr(list_.kind.find(' ') + 1));
  }

  // Schema of an object with the name of `row`.
  Json schema_of(const Row& row) const {
    Component scratch;
    choose(scratch, row);
    Object keys;
    ComponentType(scratch, list_, common_).describe_keys(keys, value_.name.empty());
    Json result = keys.schema();
    result["properties"]["name"] = true;  // checked with all names
    return result;
  }

  void add_common_keys(Object& keys, bool name_is_required) const {
    const std::string help = name_help();
    auto name = std::make_unique<ReadName>(value_, list_);
    if (name_is_required) {
      keys.require("name", std::move(name), help);
    } else {
      keys.add("name", std::move(name), help);
    }
    common_(keys, list_.find(value_.name));
  }

  void describe_keys(Object& keys, bool name_is_required) const {
    add_common_keys(keys, name_is_required);
    const Row* const row = list_.find(value_.name);
    if (row == nullptr) return;
    add_row_keys(keys, value_, *row);
  }

  // Returns the value of an integer or number key as a double.
  double amount(const std::string& key) const {
    const auto* const integer = std::get_if<std::int64_t>(&value_.options.at(key));
    return integer != nullptr ? static_cast<double>(*integer) : value_.number(key);
  }

  // Returns why the value of `rule.key` does not divide that of `rule.other`; "" if it does.
  std::string not_dividing(const Rule& rule) const {
    const std::int64_t divisor = value_.integer(rule.key), whole = value_.integer(rule.other);
    if (whole % divisor == 0) return "";
    return fmt::format("{} does not divide \"{}\", which is {}", divisor, rule.other, whole);
  }

  // Returns how `rule` is violated; "" if it is not, or if it is no rule of a single row.
  std::string broken(const Rule& rule) const {
    switch (rule.kind) {
      case Rule::Kind::kDivides:
        return not_dividing(rule);
      case Rule::Kind::kDividesIntoEven: {
        std::string found = not_dividing(rule);
        const std::int64_t quotient = value_.integer(rule.other) / value_.integer(rule.key);
        if (!found.empty() || quotient % 2 == 0) return found;
        return fmt::format("{} divides \"{}\" into parts of {}, which is odd",
                           value_.integer(rule.key), rule.other, quotient);
      }
      case Rule::Kind::kAtMost:
        if (amount(rule.key) <= amount(rule.other)) return "";
        return fmt::format("{} is more than \"{}\", which is {}", amount(rule.key), rule.other,
                           amount(rule.other));
      case Rule::Kind::kNeedsAboveZero:
        if (!value_.flag(rule.key) || value_.number(rule.other) > 0) return "";
        return fmt::format("needs \"{}\" above 0", rule.other);
      case Rule::Kind::kDividesImageSize:  // lib/recipe/checks.cpp
      case Rule::Kind::kFitsImageSize:
      case Rule::Kind::kCoversImageSize:
      case Rule::Kind::kBatchNorm:
      case Rule::Kind::kFirst:           // Components
      case Rule::Kind::kUnits:           // lib/recipe/sections/parallel/parallel.cpp, recompute.cpp
      case Rule::Kind::kOneUnit:         // the same, and precision.cpp
      case Rule::Kind::kFixedImageSize:  // lib/recipe/sections/data/resize_ramp.cpp
      case Rule::Kind::kTensorRanksShare:  // lib/recipe/tensor.cpp
      case Rule::Kind::kSequenceRanksShare:
      case Rule::Kind::kContextRanksShare:  // lib/recipe/context.cpp
      case Rule::Kind::kIsMean:             // lib/recipe/sections/ema.cpp, swa.cpp
      case Rule::Kind::kWholeTensors:       // lib/recipe/sections/whole_tensors.cpp
        return "";
    }
    return "";
  }

  void check_rules(const Node& node, const std::string& pointer, Problems& problems) const {
    for (const Rule& rule : list_.find(value_.name)->rules) {
      std::string found = broken(rule);
      if (found.empty()) continue;
      problems.add(value_at(node, rule.key), child_pointer(pointer, rule.key), std::move(found),
                   "change one of them");
    }
  }

  // The key "name" of the object; its value was read before the other keys.
  class ReadName : public Name {
   public:
    using Name::Name;
    void read(const Node&, const std::string&, Problems&) override {}
  };

  Component& value_;
  const List& list_;
  CommonKeys common_;
  Object common_keys_;
};

class Components : public Type {
 public:
  Components(std::vector<Component>& value, const List& list, const std::vector<Preset>& presets)
      : value_(value), list_(list), presets_(presets) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    if (node.text() != nullptr) return read_preset(node, pointer, problems);
    const Node::Array* const items = node.array();
    if (items == nullptr) return add_wrong_type(problems, node, pointer, "a list", *this);
    value_.assign(items->size(), Component());
    for (std::size_t i = 0; i < items->size(); ++i) {
      const std::string place = child_pointer(pointer, std::to_string(i));
      component(value_[i], list_)->read((*items)[i], place, problems);
      const Row* const row = list_.find(value_[i].name);
      if (i > 0 && row != nullptr && row->has_rule(Rule::Kind::kFirst)) {
        problems.add(
            (*items)[i], place,
            fmt::format("{} chooses what is decoded and cannot come later", in_quotes(row->name)),
            "put it in front of the others, and leave out another crop");
      }
    }
  }
  Json write() const override {
    Json result = Json::array();
    for (Component item : value_) result.push_back(component(item, list_)->write());
    return result;
  }
  Json schema() const override {
    Component item;
    const Json of_items{{"type", "array"}, {"items", component(item, list_)->schema()}};
    return {{"anyOf", {enum_schema(preset_values()), of_items}}};
  }
  std::string phrase() const override {
    return fmt::format("one of: {}, or a list of {}", fmt::join(preset_names(), ", "),
                       fmt::join(list_.names(), ", "));
  }
  const List* list() const override { return &list_; }

 private:
  NamedValues preset_values() const {
    NamedValues values;
    for (const Preset& preset : presets_) values.emplace_back(preset.name, preset.help);
    return values;
  }
  std::vector<std::string> preset_names() const { return names_of(preset_values()); }

  void read_preset(const Node& node, const std::string& pointer, Problems& problems) {
    const std::string* const name = read_text(node, pointer, *this, problems);
    if (name == nullptr) return;
    const auto found = std::find_if(presets_.begin(), presets_.end(),
                                    [&](const Preset& preset) { return preset.name == *name; });
    if (found == presets_.end()) {
      const std::string near = core::did_you_mean(*name, preset_names());
      return problems.add(node, pointer, fmt::format("{} is not a list by name", in_quotes(*name)),
                          near.empty() ? "use " + phrase() : near);
    }
    const auto source = std::make_shared<SourceText>();
    source->name = found->name;
    read(parse_json_text(found->transforms, source), pointer, problems);
  }

  std::vector<Component>& value_;
  const List& list_;
  const std::vector<Preset>& presets_;
};

}  // namespace

TypePtr component(Component& value, const List& list, CommonKeys common) {
  return std::make_unique<ComponentType>(value, list, std::move(common));
}

TypePtr components(std::vector<Component>& value, const List& list,
                   const std::vector<Preset>& presets) {
  return std::make_unique<Components>(value, list, presets);
}

std::unique_ptr<Object> row_keys(Component& value, const Row& row) {
  auto keys = std::make_unique<Object>();
  add_row_keys(*keys, value, row);
  return keys;
}

}  // namespace scaletrain::recipe
