// docs/reference/recipe.md: every key in one table, then the lists of names with their keys.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/recipe/component.h"
#include "lib/recipe/describe.h"
#include "lib/recipe/lists.h"
#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kIntroduction =
    R"(# The keys of a recipe

Written by `scaletrain recipe reference`; a test compares this file with it.

A recipe is one JSON file in UTF-8; `//` and `/* */` comments are allowed. Where a thing is chosen
by name, `"sgd"` is short for `{"name": "sgd"}`. Paths are relative to the working directory; `~` and `~user` are
homes, as in a shell. A key of any depth is set on the command line with `--set optimizer.lr=0.1`: the value is JSON, otherwise
text, and `null` removes the key. Where exactly one of several keys may be given, setting one removes
the others. `scaletrain recipe check RECIPE` reports all mistakes at once, `scaletrain recipe show RECIPE`
prints the recipe with every default.
)";

constexpr const char* kTableHead = "\n| key | value | default | meaning |\n|---|---|---|---|\n";

std::string row(const std::string& key, const std::string& value, const std::string& standard,
                const std::string& help) {
  return fmt::format("| `{}` | {} | {} | {} |\n", key, value, standard, help);
}

std::string shown_default(const Object& keys, const Field& field) {
  if (field.required) return "required";
  const Group* const group = keys.group(field.name);
  if (group != nullptr) return group->needed ? "exactly one of them" : "at most one of them";
  const Json value = field.type->write();
  return value.is_null() ? "" : fmt::format("`{}`", value.dump());
}

void add_rows(const Object& keys, const std::string& prefix, std::string& text,
              std::vector<const List*>& lists) {
  for (const Field& field : keys.fields()) {
    const std::string key = prefix + field.name;
    const List* const list = field.type->list();
    if (list != nullptr && std::find(lists.begin(), lists.end(), list) == lists.end()) {
      lists.push_back(list);
    }
    const Object* const below = field.type->object();
    if (below == nullptr || below->is_one_row()) {
      text += row(key, field.type->phrase(), shown_default(keys, field), field.help);
    } else {
      text += row(key, "", field.required ? "required" : "", field.help);
      add_rows(*below, key + ".", text, lists);
    }
  }
}

void add_keys(const Object& object, const std::string& prefix,
              std::vector<std::pair<std::string, std::string>>& keys) {
  for (const Field& field : object.fields()) {
    const Object* const below = field.type->object();
    if (below == nullptr || below->is_one_row()) {
      keys.emplace_back(prefix + field.name, field.help);
    } else {
      add_keys(*below, prefix + field.name + ".", keys);
    }
  }
}

void add_all_keys(const Object& object, const std::string& prefix, std::vector<std::string>& keys) {
  for (const Field& field : object.fields()) {
    keys.push_back(prefix + field.name);
    const Object* const below = field.type->object();
    if (below == nullptr) continue;
    const std::string inner = prefix + field.name + ".";
    add_all_keys(*below, inner, keys);
    if (field.type->list() == nullptr) continue;
    for (const Row& item : field.type->list()->rows) {
      for (const Option& option : item.options) keys.push_back(inner + option.key);
    }
  }
}

std::string list_section(const List& list) {
  std::string text = fmt::format("\n## Where {} is chosen\n", list.kind);
  for (const Row& item : list.rows) {
    text += fmt::format("\n### `{}`\n\n{}.\n", item.name, item.help);
    if (item.options.empty()) continue;
    Component scratch;
    choose(scratch, item);
    const std::unique_ptr<Object> keys = row_keys(scratch, item);
    text += kTableHead;
    std::vector<const List*> none;
    add_rows(*keys, "", text, none);
  }
  return text;
}

std::string preset_section() {
  std::string text = "\n## Lists of transforms by name\n";
  for (const Preset& preset : augment_presets()) {
    text += fmt::format("\n### `{}`\n\n{}:\n\n```json\n{}\n```\n", preset.name, preset.help,
                        preset.transforms);
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settable_keys() {
  Recipe recipe = blank_recipe();
  std::vector<std::pair<std::string, std::string>> result;
  add_keys(*describe(recipe), "", result);
  return result;
}

std::vector<std::string> all_keys(const CatalogPtr& catalog) {
  Recipe recipe = blank_recipe(catalog);
  std::vector<std::string> result;
  add_all_keys(*describe(recipe), "", result);
  return result;
}

std::string markdown_reference(const CatalogPtr& catalog) {
  Recipe recipe = blank_recipe(catalog);
  const std::unique_ptr<Object> keys = describe(recipe);
  std::string text = std::string(kIntroduction) + kTableHead;
  std::vector<const List*> lists;
  add_rows(*keys, "", text, lists);
  for (const List* list : lists) text += list_section(*list);
  return text + preset_section();
}

}  // namespace scaletrain::recipe
