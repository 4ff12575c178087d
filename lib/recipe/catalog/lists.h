// The lists of names (models.def and the others) as values: rows with their keys.
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
  Range range;  // for a number, or each number of a list
  std::string help;
  NamedValues allowed = {};  // for a text; empty: a required file path

  bool is_path() const { return std::holds_alternative<std::string>(standard) && allowed.empty(); }
  bool is_list() const { return std::holds_alternative<std::vector<double>>(standard); }
  bool is_required() const { return is_path() || is_list(); }  // there is no default
};

// An enumeration, whose first value is the default.
Option choice_option(std::string key, std::string help, NamedValues values);

// Condition on two keys of one row (kDividesIntoEven: `key` divides `other`, and the quotient is
// even), on one (for kFitsImageSize `other` times) and the image size, on the batch where BatchNorm
// sees one value for each kBatchNormStride pixels of a side, or (kFirst) on the row's place in a
// list of components; kUnits: the model has `key` and `other` units, or `other` without a key;
// kOneUnit: it is one unit, which does not show its layers; kIsMean: the optimizer evaluates and
// saves a mean of the weights itself; kWholeTensors: an update of the optimizer looks at a whole
// tensor, or at blocks of it; kFixedImageSize: the model has weights for images of one size;
// kTensorRanksShare: the ranks of /parallel/tensor share as many things as `key`, or as `key` times
// `other`, evenly, and a model without such a rule cannot be cut; kContextRanksShare: the ranks of
// /parallel/context can share its sequences.
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

// Source of a model and of its weights.
struct Published {
  std::string source;           // a Python package
  std::int64_t parameters = 0;  // with 1,000 classes
  double top1 = 0;              // ImageNet-1k accuracy in percent
  std::string weights;
};

struct Row {
  Row(std::string row_name, std::string row_help,
      std::initializer_list<std::variant<Option, Rule, ForTask, Published>> items);

  std::string name, help;
  std::string task = "image_classification";  // the model's task
  std::optional<Published> published;         // the model's source
  std::vector<Option> options;
  std::vector<Rule> rules;

  bool has_rule(Rule::Kind kind) const;
};

struct List {
  std::string kind;     // with its article: "a model"
  std::string heading;  // section in the reference: "Models"
  std::vector<Row> rows;
  std::string missing = {};  // the file that would list more of them

  const Row* find(std::string_view name) const;
  std::vector<std::string> names() const;
  NamedValues values() const;  // the names with their help texts
};

const List& models();  // models.def; a worker may have more (lib/recipe/catalog/catalog.h)
const List& losses();
const List& optimizers();
const List& schedules();
const List& transforms();
const List& precisions();

// A list of transforms by name.
struct Preset {
  std::string name, help;
  std::string transforms;  // as in a recipe
};
const std::vector<Preset>& augment_presets();

// Makes `component` the row's thing, every key at its default.
void choose(Component& component, const Row& row);

}  // namespace scaletrain::recipe
