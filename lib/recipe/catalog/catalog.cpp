#include "lib/recipe/catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "lib/core/error.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
namespace {

// True if `text` is a C++ identifier, as the macros of a row need.
bool is_identifier(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), fits);
}

bool is_allowed(const Option& option) {
  if (const auto* whole = std::get_if<std::int64_t>(&option.standard)) {
    return option.range.contains(static_cast<double>(*whole));
  }
  if (const auto* real = std::get_if<double>(&option.standard)) return option.range.contains(*real);
  const auto* text = std::get_if<std::string>(&option.standard);
  if (text == nullptr || option.is_path()) return true;
  const std::vector<std::string> allowed = names_of(option.allowed);
  return std::find(allowed.begin(), allowed.end(), *text) != allowed.end();
}

template <class T>
const Option* find(const Row& row, std::string_view key) {
  const auto found =
      std::find_if(row.options.begin(), row.options.end(), [&](const Option& option) {
        return option.key == key && std::holds_alternative<T>(option.standard);
      });
  return found == row.options.end() ? nullptr : &*found;
}

// True for text of one to nine digits, the numbers of kUnits and kFitsImageSize.
bool is_whole_number(std::string_view text) {
  constexpr std::size_t kDigits = 9;
  return !text.empty() && text.size() <= kDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string missing(std::string_view what, std::string_view key) {
  return fmt::format("needs {} \"{}\", which it has not", what, key);
}

std::string fault_of_units(const Rule& rule, const Row& row) {
  if (!is_whole_number(rule.other)) return fmt::format("has \"{}\" units", rule.other);
  double fewest = std::stod(rule.other);
  if (!rule.key.empty()) {
    const Option* const option = find<std::int64_t>(row, rule.key);
    if (option == nullptr) return missing("an integer key", rule.key);
    fewest += option->range.least + (option->range.above_least ? 1 : 0);
  }
  return fewest < 1 ? "may have no unit" : "";
}

// Returns why the rule can never be checked; "" if it can.
std::string fault_of(const Rule& rule, const Row& row) {
  constexpr std::string_view kInteger = "an integer key", kNumber = "a number key";
  switch (rule.kind) {
    case Rule::Kind::kDivides:
    case Rule::Kind::kDividesIntoEven:
      if (find<std::int64_t>(row, rule.other) == nullptr) return missing(kInteger, rule.other);
      [[fallthrough]];
    case Rule::Kind::kDividesImageSize: {
      const Option* const divisor = find<std::int64_t>(row, rule.key);
      if (divisor == nullptr) return missing(kInteger, rule.key);
      if (!divisor->range.contains(0)) return "";
      return fmt::format("divides by \"{}\", which may be 0", rule.key);
    }
    case Rule::Kind::kAtMost:
      for (const std::string& key : {rule.key, rule.other}) {
        const bool is_there = find<double>(row, key) != nullptr;
        if (!is_there && find<std::int64_t>(row, key) == nullptr) return missing(kNumber, key);
      }
      return "";
    case Rule::Kind::kNeedsAboveZero:
      if (find<bool>(row, rule.key) == nullptr) return missing("a flag", rule.key);
      return find<double>(row, rule.other) == nullptr ? missing(kNumber, rule.other) : "";
    case Rule::Kind::kFitsImageSize:
      if (!is_whole_number(rule.other)) {
        return fmt::format(R"(has "{}" times "{}" in an image)", rule.other, rule.key);
      }
      return find<std::int64_t>(row, rule.key) == nullptr ? missing(kInteger, rule.key) : "";
    case Rule::Kind::kUnits:
      return fault_of_units(rule, row);
    case Rule::Kind::kTensorRanksShare:
      if (find<std::int64_t>(row, rule.key) == nullptr) return missing(kInteger, rule.key);
      if (rule.other.empty() || find<double>(row, rule.other) != nullptr) return "";
      return missing(kNumber, rule.other);
    case Rule::Kind::kSequenceRanksShare:
      if (row.has_rule(Rule::Kind::kTensorRanksShare)) return "";
      return "has SEQUENCE_RANKS_SHARE without TENSOR_RANKS_SHARE";
    case Rule::Kind::kBatchNorm:
    case Rule::Kind::kOneUnit:
    case Rule::Kind::kFixedImageSize:
    case Rule::Kind::kContextRanksShare:
      return "";
    case Rule::Kind::kCoversImageSize:
    case Rule::Kind::kFirst:
      return "has a condition that is for transforms";
    case Rule::Kind::kIsMean:
    case Rule::Kind::kWholeTensors:
      return "has a condition that is for optimizers";
  }
  return "";
}

// Returns why `row` cannot be a model; "" if it can.
std::string fault_of(const Row& row) {
  if (!is_identifier(row.name)) return "is not a name of letters, digits and _";
  if (find_task(row.task) == nullptr)
    return fmt::format("has the task {}, which does not exist", row.task);
  for (std::size_t i = 0; i < row.options.size(); ++i) {
    const Option& option = row.options[i];
    const auto same = [&](const Option& other) { return other.key == option.key; };
    if (!is_identifier(option.key) || option.key == "name" || option.key == "num_classes" ||
        option.key == "in_channels" ||
        std::count_if(row.options.begin(), row.options.end(), same) > 1) {
      return fmt::format("has a key \"{}\", which is no name, or taken", option.key);
    }
    if (!is_allowed(option)) {
      return fmt::format("has a default of \"{}\" that is not allowed", option.key);
    }
  }
  for (const Rule& rule : row.rules) {
    if (std::string fault = fault_of(rule, row); !fault.empty()) return fault;
  }
  if (find_task(row.task)->reads != TaskRow::Reads::kTokens) return "";
  for (const char* const key : {"vocab_size", "positions"}) {  // lib/recipe/sections/model.h
    if (find<std::int64_t>(row, key) == nullptr) return missing("an integer key", key);
  }
  return "";
}

}  // namespace

CatalogPtr built_in_catalog() {
  static const CatalogPtr catalog = std::make_shared<const Catalog>(Catalog{models()});
  return catalog;
}

CatalogPtr catalog_with(const std::vector<Row>& rows) {
  Catalog catalog = *built_in_catalog();
  for (const Row& row : rows) {
    std::string fault = fault_of(row);
    if (catalog.models.find(row.name) != nullptr) fault = "exists already";
    if (!fault.empty()) {
      throw core::UsageError(fmt::format("model {}", row.name), fault, "change its row");
    }
    catalog.models.rows.push_back(row);
  }
  return std::make_shared<const Catalog>(std::move(catalog));
}

}  // namespace scaletrain::recipe
