#include "launcher/runs/recipe_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "lib/core/error.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

bool is_plain_list(const RunJson& value) {
  return value.is_array() && std::none_of(value.begin(), value.end(),
                                          [](const RunJson& one) { return one.is_structured(); });
}

void add_keys(const RunJson& value, const std::string& key, std::map<std::string, RunJson>& keys) {
  if (!value.is_structured() || value.empty() || is_plain_list(value)) {
    keys.emplace(key, value);
    return;
  }
  std::size_t number = 0;
  for (const auto& below : value.items()) {
    const std::string name = value.is_array() ? std::to_string(number++) : below.key();
    add_keys(below.value(), key.empty() ? name : key + "." + name, keys);
  }
}

bool compare_numbers(double value, const std::string& by, double wanted) {
  if (by == "<") return value < wanted;
  if (by == "<=") return value <= wanted;
  if (by == ">") return value > wanted;
  if (by == ">=") return value >= wanted;
  return by == "=" ? value == wanted : value != wanted;
}

}  // namespace

std::map<std::string, RunJson> flat_keys(const RunJson& recipe) {
  std::map<std::string, RunJson> keys;
  if (recipe.is_object()) add_keys(recipe, "", keys);
  return keys;
}

std::vector<std::string> differing_keys(
    const std::vector<std::map<std::string, RunJson>>& recipes) {
  std::set<std::string> all;
  for (const auto& recipe : recipes) {
    for (const auto& [key, value] : recipe) all.insert(key);
  }
  all.erase("output");
  std::vector<std::string> differing;
  const auto value_in = [](const std::map<std::string, RunJson>& recipe, const std::string& key) {
    const auto found = recipe.find(key);
    return found == recipe.end() ? RunJson() : found->second;
  };
  for (const std::string& key : all) {
    const RunJson first = value_in(recipes.front(), key);
    const bool is_same = std::all_of(recipes.begin(), recipes.end(), [&](const auto& recipe) {
      return value_in(recipe, key) == first;
    });
    if (!is_same) differing.push_back(key);
  }
  return differing;
}

std::string key_text(const RunJson& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : core::json_text(value);
}

KeyCondition::KeyCondition(const std::string& text) {
  constexpr std::array kOperators{"!=", "<=", ">=", "=", "<", ">"};
  const std::size_t at = text.find_first_of("!<>=");
  for (const char* const one : kOperators) {
    if (at == std::string::npos || at == 0 || text.compare(at, std::string(one).size(), one) != 0) {
      continue;
    }
    key_ = text.substr(0, at);
    operator_ = one;
    wanted_ = text.substr(at + operator_.size());
    break;
  }
  if (operator_.empty()) {
    throw core::UsageError("--where", fmt::format("\"{}\" is not a condition", text),
                           "write KEY=VALUE with =, !=, <, <=, > or >=: optimizer.name=adamw");
  }
  const bool by_size = operator_ != "=" && operator_ != "!=";
  if (by_size && !number_in_text(wanted_)) {
    throw core::UsageError("--where", fmt::format("\"{}\" is not a number", wanted_),
                           fmt::format("{} compares numbers: {}{}0.1", operator_, key_, operator_));
  }
}

bool KeyCondition::holds(const std::map<std::string, RunJson>& recipe) const {
  const auto found = recipe.find(key_);
  if (found == recipe.end()) return operator_ == "!=";
  const std::optional<double> wanted = number_in_text(wanted_);
  if (found->second.is_number() && wanted) {
    return compare_numbers(found->second.get<double>(), operator_, *wanted);
  }
  if (operator_ == "=") return key_text(found->second) == wanted_;
  return operator_ == "!=" && key_text(found->second) != wanted_;
}

}  // namespace scaletrain::launcher
