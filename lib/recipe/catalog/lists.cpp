#include "lib/recipe/catalog/lists.h"

#include <algorithm>
#include <utility>

#include "lib/recipe/catalog/row_keys.h"

namespace scaletrain::recipe {

#define SCALETRAIN_ROW(name, help, ...) Row{#name, help, {__VA_ARGS__}},

#define SCALETRAIN_MODEL SCALETRAIN_ROW
#define SCALETRAIN_LOSS SCALETRAIN_ROW
#define SCALETRAIN_OPTIMIZER SCALETRAIN_ROW
#define SCALETRAIN_SCHEDULE SCALETRAIN_ROW
#define SCALETRAIN_TRANSFORM SCALETRAIN_ROW
#define SCALETRAIN_CROP(name, help, ...) \
  Row{#name, help, {Rule{Rule::Kind::kFirst, "", ""}, __VA_ARGS__}},
#define SCALETRAIN_PRECISION SCALETRAIN_ROW

const List& models() {
  static const List list{"a model",
                         "Models",
                         {
#include "lib/recipe/catalog/models.def"
                         }};
  return list;
}

const List& losses() {
  static const List list{"a loss",
                         "Losses",
                         {
#include "lib/recipe/catalog/losses.def"
                         }};
  return list;
}

const List& optimizers() {
  static const List list{"an optimizer",
                         "Optimizers",
                         {
#include "lib/recipe/catalog/optimizers.def"
                         }};
  return list;
}

const List& schedules() {
  static const List list{"a schedule",
                         "Learning rate schedules",
                         {
#include "lib/recipe/catalog/schedules.def"
                         }};
  return list;
}

const List& transforms() {
  static const List list{"a transform",
                         "Transforms",
                         {
#include "lib/recipe/catalog/transforms.def"
                         }};
  return list;
}

const List& precisions() {
  static const List list{"a precision",
                         "Precisions",
                         {
#include "lib/recipe/catalog/precisions.def"
                         }};
  return list;
}

const std::vector<Preset>& augment_presets() {
  static const std::vector<Preset> presets{
#define SCALETRAIN_AUGMENT_PRESET(name, help, transforms) Preset{name, help, transforms},
#include "lib/recipe/catalog/augment_presets.def"
  };
  return presets;
}

Option choice_option(std::string key, std::string help, NamedValues values) {
  std::string standard = values.front().name;
  return {.key = std::move(key),
          .standard = std::move(standard),
          .range = {},
          .help = std::move(help),
          .allowed = std::move(values)};
}

bool Row::has_rule(Rule::Kind kind) const {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const Rule& rule) { return rule.kind == kind; });
}

Row::Row(std::string row_name, std::string row_help,
         std::initializer_list<std::variant<Option, Rule, ForTask, Published>> items)
    : name(std::move(row_name)), help(std::move(row_help)) {
  for (const auto& item : items) {
    if (const auto* option = std::get_if<Option>(&item)) options.push_back(*option);
    if (const auto* rule = std::get_if<Rule>(&item)) rules.push_back(*rule);
    if (const auto* learned = std::get_if<ForTask>(&item)) task = learned->name;
    if (const auto* known = std::get_if<Published>(&item)) published = *known;
  }
}

const Row* List::find(std::string_view name) const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> List::names() const {
  std::vector<std::string> result;
  for (const Row& row : rows) result.push_back(row.name);
  return result;
}

NamedValues List::values() const {
  NamedValues result;
  for (const Row& row : rows) result.emplace_back(row.name, row.help);
  return result;
}

void choose(Component& component, const Row& row) {
  component.name = row.name;
  component.options.clear();
  for (const Option& option : row.options) component.options.emplace(option.key, option.standard);
}

}  // namespace scaletrain::recipe
