// The lists of names (models.def and the others) as data: rows with their keys and rules.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/schema/named_value.h"
#include "lib/recipe/schema/range.h"

namespace scaletrain::recipe {

struct Option {
  std::string key;
  Component::Value standard;
  Range range;  // of a number, or of each number of a list
  std::string help;
  NamedValues allowed = {};  // values of a text; empty: a required file path

  bool is_path() const { return std::holds_alternative<std::string>(standard) && allowed.empty(); }
  bool is_list() const { return std::holds_alternative<std::vector<double>>(standard); }
  bool is_required() const { return is_path() || is_list(); }  // true if there is no default
};

// Makes an enumeration; its first value is the default.
Option choice_option(std::string key, std::string help, NamedValues values);

// Rule of a row between its keys or against the rest of the recipe. `key` and `other` are keys of
// the row, or numbers as text. The kinds: kDividesIntoEven: `key` divides `other`, and the quotient
// is even. kFitsImageSize: the image size is at least `other` times `key`. kUnits: the model has as
// many units as `key` says, and `other` more; without a key, `other` units. kOneUnit: the model is
// a single unit, whose layers are not visible to the trainer. kBatchNorm: BatchNorm sees one value
// for each kBatchNormStride pixels of a side. kFirst: the row must be the first in a list of
// components. kIsMean: the optimizer evaluates and saves averaged weights itself. kWholeTensors: an
// update of the optimizer reads a full tensor, or blocks of it. kFixedImageSize: the weights fit
// images of one size only. kTensorRanksShare: the size of /parallel/tensor divides `key`, or `key`
// times `other`; a model without such a rule does not support tensor parallelism.
// kSequenceRanksShare: the model supports /parallel/sequence. kContextRanksShare: it supports
// /parallel/context.
struct Rule {
  enum class Kind {
    kDivides,
    kDividesIntoEven,
    kDividesImageSize,
    kFitsImageSize,
    kCoversImageSize,
    kAtMost,
    kNeedsAboveZero,
    kBatchNorm,
    kFirst,
    kUnits,
    kOneUnit,
    kIsMean,
    kWholeTensors,
    kFixedImageSize,
    kTensorRanksShare,
    kSequenceRanksShare,
    kContextRanksShare
  };
  Kind kind = Kind::kDivides;
  std::string key = {}, other = {};
};

inline constexpr std::int64_t kBatchNormStride = 32;

// Training task: a row of lib/recipe/catalog/tasks.def.
struct ForTask {
  std::string name;
};

// Origin of a model and of its published weights.
struct Published {
  std::string source;           // a Python package, "torchvision"
  std::int64_t parameters = 0;  // with 1,000 classes
  double top1 = 0;              // ImageNet-1k accuracy in percent
  std::string weights;
};

struct Row {
  Row(std::string row_name, std::string row_help,
      std::initializer_list<std::variant<Option, Rule, ForTask, Published>> items);

  std::string name, help;
  std::string task = "image_classification";  // task that the model is made for
  std::optional<Published> published;         // published weights, if any
  std::vector<Option> options;
  std::vector<Rule> rules;

  bool has_rule(Rule::Kind kind) const;
};

struct List {
  std::string kind;     // noun with its article: "a model"
  std::string heading;  // section in the reference: "Models"
  std::vector<Row> rows;
  std::string missing = {};  // file that would have more rows, if it is missing

  const Row* find(std::string_view name) const;
  std::vector<std::string> names() const;
  NamedValues values() const;  // names with their help texts
};

// Rows of models.def; a custom worker may have more (lib/recipe/catalog/catalog.h).
const List& models();
const List& losses();
const List& optimizers();
const List& schedules();
const List& transforms();
const List& precisions();

// Preset: a named list of transforms.
struct Preset {
  std::string name, help;
  std::string transforms;  // JSON, as in a recipe
};
const std::vector<Preset>& augment_presets();

// Sets `component` to the row's name with all its keys at their defaults.
void choose(Component& component, const Row& row);

}  // namespace scaletrain::recipe
