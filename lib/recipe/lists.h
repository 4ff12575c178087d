// The lists of names (models.def and the others) as values: rows with their keys.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/recipe/range.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

struct Option {
  std::string key;
  Component::Value standard;
  Range range;  // of a number
  std::string help;
};

// What must hold between two keys of one row, or between one and the image size.
struct Rule {
  enum class Kind { kDivides, kDividesImageSize, kAtMost, kNeedsAboveZero };
  Kind kind = Kind::kDivides;
  std::string key, other;
};

struct Row {
  Row(std::string row_name, std::string row_help,
      std::initializer_list<std::variant<Option, Rule>> keys_and_rules);

  std::string name, help;
  std::vector<Option> options;
  std::vector<Rule> rules;
};

struct List {
  std::string kind;  // "model", with its article: "a model"
  std::vector<Row> rows;

  const Row* find(std::string_view name) const;
  std::vector<std::string> names() const;
};

const List& models();
const List& losses();
const List& optimizers();
const List& schedules();
const List& transforms();
const List& precisions();

// Makes `component` the row's thing, every key at its default.
void choose(Component& component, const Row& row);

}  // namespace scaletrain::recipe
