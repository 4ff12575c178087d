#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/recipe/catalog/component.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/catalog/task.h"
#include "lib/recipe/describe.h"
#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

using Helps = std::vector<std::pair<std::string, std::string>>;  // place, help text

void add_helps(const Object& keys, const std::string& prefix, Helps& helps) {
  for (const Field& field : keys.fields()) {
    helps.emplace_back(prefix + field.name, field.help);
    for (const NamedValue& value : field.type->values()) {
      helps.emplace_back(prefix + field.name + "=" + value.name, value.help);
    }
    const Object* const below = field.type->object();
    if (below != nullptr) add_helps(*below, prefix + field.name + ".", helps);
    const Type* const item = field.type->item();
    if (item != nullptr) add_helps(*item->object(), prefix + field.name + "[].", helps);
  }
}

Helps all_helps() {
  Helps helps;
  Recipe recipe = blank_recipe();
  add_helps(*describe(recipe), "", helps);
  for (const List* const list :
       {&models(), &losses(), &optimizers(), &schedules(), &transforms(), &precisions()}) {
    for (const Row& row : list->rows) {
      helps.emplace_back(row.name, row.help);
      Component scratch;
      choose(scratch, row);
      add_helps(*row_keys(scratch, row), row.name + ".", helps);
    }
  }
  for (const TaskRow& task : tasks()) helps.emplace_back(task.name, task.help);
  for (const Preset& preset : augment_presets()) helps.emplace_back(preset.name, preset.help);
  return helps;
}

// The longest run of words between ends of sentences.
std::size_t longest_sentence(const std::string& text) {
  std::size_t longest = 0, words = 0;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    longest = std::max(longest, ++words);
    if (word.back() == '.') words = 0;
  }
  return longest;
}

}  // namespace

TEST_CASE(
    "every key, row and value has a help text of short sentences that names the thing first") {
  constexpr std::array<std::string_view, 7> kFragments{"of ",    "what ", "whether ", "where ",
                                                       "which ", "that ", "how "};
  for (const auto& [key, text] : all_helps()) {
    const std::string& place = key;
    const std::string& help = text;
    CAPTURE(place);
    CAPTURE(help);
    CHECK(help.ends_with("."));
    CHECK(longest_sentence(help) <= 25);
    std::string lower = help;
    if (!lower.empty() && lower[0] >= 'A' && lower[0] <= 'Z') lower[0] += 'a' - 'A';
    CHECK(std::none_of(kFragments.begin(), kFragments.end(),
                       [&](std::string_view start) { return lower.starts_with(start); }));
  }
}

TEST_CASE("the reference has a table for each section and the values of enumerations") {
  const std::string text = markdown_reference();
  for (const char* const heading :
       {"## Activation checkpointing\n", "## Gradient clipping\n", "## Early stopping\n",
        "## Parallelism\n", "## Models\n", "## Optimizers\n", "## Learning rate schedules\n"}) {
    CAPTURE(heading);
    CHECK(text.find(heading) != std::string::npos);
  }
  CHECK(text.find("<br>`gradients`: ZeRO-2: shards gradients too.") != std::string::npos);
  CHECK(text.find("\n| `optimizer.groups[].lr_scale` |") != std::string::npos);
  // No part of the page is an empty table.
  CHECK(text.find("|---|---|---|---|\n\n") == std::string::npos);
}

}  // namespace scaletrain::recipe
