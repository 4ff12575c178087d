#include "lib/exchange/foreign_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::json;

constexpr const char* kOtherModel =
    "scaletrain's model of that name cannot compute this: use another model, or the library of the "
    "weights";

const json& nothing() {
  static const json null;
  return null;
}

const json& no_object() {
  static const json empty = json::object();
  return empty;
}

}  // namespace

ForeignConfig::ForeignConfig(const json& object, std::string place, std::string pointer)
    : object_(object), place_(std::move(place)), pointer_(std::move(pointer)) {}

const json& ForeignConfig::value(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nothing() : *found;
}

const json& ForeignConfig::needed(const std::string& key) const {
  if (!has(key)) refuse(key, "a value");
  return value(key);
}

bool ForeignConfig::has(const std::string& key) const { return !value(key).is_null(); }

std::int64_t ForeignConfig::integer(const std::string& key) const {
  const json& found = needed(key);
  if (!found.is_number_integer()) refuse(key, "a whole number");
  return found.get<std::int64_t>();
}

std::int64_t ForeignConfig::integer(const std::string& key, std::int64_t standard) const {
  return has(key) ? integer(key) : standard;
}

double ForeignConfig::number(const std::string& key, double standard) const {
  if (!has(key)) return standard;
  const json& found = value(key);
  if (!found.is_number() || !std::isfinite(found.get<double>())) refuse(key, "a number");
  return found.get<double>();
}

bool ForeignConfig::flag(const std::string& key, bool standard) const {
  if (!has(key)) return standard;
  if (!value(key).is_boolean()) refuse(key, "true or false");
  return value(key).get<bool>();
}

std::string ForeignConfig::text(const std::string& key) const {
  const json& found = needed(key);
  if (!found.is_string()) refuse(key, "a text");
  return found.get<std::string>();
}

std::string ForeignConfig::text(const std::string& key, const std::string& standard) const {
  return has(key) ? text(key) : standard;
}

ForeignConfig ForeignConfig::inner(const std::string& key) const {
  const std::string pointer = fmt::format("{}/{}", pointer_, key);
  if (!has(key)) return {no_object(), place_, pointer};
  if (!value(key).is_object()) refuse(key, "an object");
  return {value(key), place_, pointer};
}

void ForeignConfig::allow(const std::string& key, std::initializer_list<json> values) const {
  if (!has(key) || std::find(values.begin(), values.end(), value(key)) != values.end()) return;
  std::vector<std::string> shown;
  shown.reserve(values.size());
  for (const json& one : values) shown.push_back(core::json_text(one));
  refuse(key, fmt::format("{}", fmt::join(shown, " or ")));
}

void ForeignConfig::refuse(const std::string& key, const std::string& allowed) const {
  const std::string found = has(key) ? "is " + core::json_text(value(key)) : "is missing";
  throw core::CheckpointError(fmt::format("{}: {}/{}", place_, pointer_, core::printable(key)),
                              fmt::format("{}, and {} is needed", core::printable(found), allowed),
                              kOtherModel);
}

}  // namespace scaletrain::exchange
