#include "lib/recipe/catalog/registry.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/version.h"
#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMaxBytes = 16 << 20;
constexpr const char* kRemedy =
    "build the worker again: scaletrain_add_worker() writes it beside the program";

constexpr std::array<std::pair<Rule::Kind, std::string_view>, 13> kRules{{
    {Rule::Kind::kDivides, "divides"},
    {Rule::Kind::kDividesIntoEven, "divides_into_even"},
    {Rule::Kind::kDividesImageSize, "divides_image_size"},
    {Rule::Kind::kFitsImageSize, "fits_image_size"},
    {Rule::Kind::kAtMost, "at_most"},
    {Rule::Kind::kNeedsAboveZero, "needs_above_zero"},
    {Rule::Kind::kBatchNorm, "batch_norm"},
    {Rule::Kind::kUnits, "units"},
    {Rule::Kind::kOneUnit, "one_unit"},
    {Rule::Kind::kFixedImageSize, "fixed_image_size"},
    {Rule::Kind::kTensorRanksShare, "tensor_ranks_share"},
    {Rule::Kind::kSequenceRanksShare, "sequence_ranks_share"},
    {Rule::Kind::kContextRanksShare, "context_ranks_share"},
}};

struct TypeName {
  const Option& option;

  std::string operator()(std::int64_t /*value*/) const { return "integer"; }
  std::string operator()(double /*value*/) const { return "number"; }
  std::string operator()(bool /*value*/) const { return "flag"; }
  std::string operator()(const std::string& /*value*/) const {
    return option.is_path() ? "file" : "choice";
  }
  std::string operator()(const std::vector<double>& /*value*/) const { return "numbers"; }
};

void add_allowed(Json& json, const NamedValues& values) {
  json["allowed"] = names_of(values);
  for (const NamedValue& value : values) {
    if (!value.help.empty()) json["allowed_help"][value.name] = value.help;
  }
}

Json key_json(const Option& option) {
  const std::string type = std::visit(TypeName{option}, option.standard);
  Json json{{"key", option.key}, {"type", type}};
  if (!option.is_required()) {
    std::visit([&](const auto& value) { json["default"] = value; }, option.standard);
  }
  if (type == "choice") add_allowed(json, option.allowed);
  if (type == "integer" || type == "number" || type == "numbers") {
    json["least"] = option.range.least;
    if (std::isfinite(option.range.most)) json["most"] = option.range.most;
    if (option.range.above_least) json["above_least"] = true;
    if (option.range.below_most) json["below_most"] = true;
  }
  json["help"] = option.help;
  return json;
}

Json rule_json(const Rule& rule) {
  Json json;
  for (const auto& [kind, name] : kRules) {
    if (kind == rule.kind) json["rule"] = name;
  }
  if (!rule.key.empty()) json["key"] = rule.key;
  if (!rule.other.empty()) json["other"] = rule.other;
  return json;
}

Json row_json(const Row& row) {
  Json json{{"name", row.name},
            {"help", row.help},
            {"task", row.task},
            {"keys", Json::array()},
            {"rules", Json::array()}};
  for (const Option& option : row.options) json["keys"].push_back(key_json(option));
  for (const Rule& rule : row.rules) json["rules"].push_back(rule_json(rule));
  return json;
}

// Returns the value at `key`, which must have exactly the type T; throws std::runtime_error.
template <class T>
T get(const Json& json, const char* key) {
  const Json& value = json.at(key);
  bool fits = false;
  if constexpr (std::is_same_v<T, bool>) fits = value.is_boolean();
  if constexpr (std::is_same_v<T, std::int64_t>) fits = value.is_number_integer();
  if constexpr (std::is_same_v<T, double>) fits = value.is_number();
  if constexpr (std::is_same_v<T, std::string>) fits = value.is_string();
  if (!fits) throw std::runtime_error(fmt::format("{} is of another type", key));
  return value.get<T>();
}

template <class T>
T get(const Json& json, const char* key, T otherwise) {
  return json.contains(key) ? get<T>(json, key) : otherwise;
}

NamedValues allowed_of(const Json& json) {
  NamedValues values;
  for (auto& name : json.at("allowed").get<std::vector<std::string>>()) {
    values.emplace_back(std::move(name));
  }
  if (values.empty()) throw std::runtime_error("nothing is allowed");
  if (!json.contains("allowed_help")) return values;
  const Json& helps = json.at("allowed_help");
  for (NamedValue& value : values) value.help = get<std::string>(helps, value.name.c_str(), "");
  return values;
}

Option option_of(const Json& json) {
  const auto type = get<std::string>(json, "type");
  Option option{.key = get<std::string>(json, "key"),
                .standard = {},
                .range = {},
                .help = get<std::string>(json, "help")};
  if (type == "integer" || type == "number" || type == "numbers") {
    if (type == "integer") option.standard = get<std::int64_t>(json, "default");
    if (type == "number") option.standard = get<double>(json, "default");
    if (type == "numbers") option.standard = std::vector<double>();
    option.range = {.least = get<double>(json, "least"),
                    .most = get<double>(json, "most", Range().most),
                    .above_least = get<bool>(json, "above_least", false),
                    .below_most = get<bool>(json, "below_most", false)};
  } else if (type == "flag") {
    option.standard = get<bool>(json, "default");
  } else if (type == "choice") {
    option.standard = get<std::string>(json, "default");
    option.allowed = allowed_of(json);
  } else if (type == "file") {
    option.standard = std::string();
  } else {
    throw std::runtime_error(fmt::format("{} is no type", type));
  }
  return option;
}

Rule rule_of(const Json& json) {
  const auto wanted = get<std::string>(json, "rule");
  for (const auto& [kind, name] : kRules) {
    if (name != wanted) continue;
    return {.kind = kind,
            .key = get<std::string>(json, "key", ""),
            .other = get<std::string>(json, "other", "")};
  }
  throw std::runtime_error(fmt::format("{} is no rule", wanted));
}

Row row_of(const Json& json) {
  Row row(get<std::string>(json, "name"), get<std::string>(json, "help"), {});
  row.task = get<std::string>(json, "task");
  for (const Json& key : json.at("keys")) row.options.push_back(option_of(key));
  for (const Json& rule : json.at("rules")) row.rules.push_back(rule_of(rule));
  return row;
}

void check_version(const Json& json, const std::string& place) {
  const auto writer = get<std::string>(json, "scaletrain");
  const auto version = get<std::int64_t>(json, "version");
  std::string found;
  if (version != kVersion) {
    found = fmt::format("has version {}, and {} is known", version, kVersion);
  } else if (writer != core::version()) {
    found = fmt::format("was written by scaletrain {}, and this is {}", core::printable(writer),
                        core::version());
  }
  if (!found.empty()) {
    throw core::UsageError(place, found, "build the worker again, with this version");
  }
}

// Returns the rows that models.def does not have.
std::vector<Row> added_rows(const Json& json) {
  std::vector<Row> rows;
  for (const Json& row : json.at("models")) {
    if (models().find(get<std::string>(row, "name")) == nullptr) rows.push_back(row_of(row));
  }
  return rows;
}

}  // namespace

fs::path registry_of(const fs::path& worker) { return worker.string() + ".registry.json"; }

std::string to_json(const Catalog& catalog) {
  Json json{{"version", kVersion}, {"scaletrain", core::version()}, {"models", Json::array()}};
  for (const Row& row : catalog.models.rows) json["models"].push_back(row_json(row));
  return core::json_text(json, 2) + "\n";
}

CatalogPtr read_catalog(const fs::path& registry) {
  const std::string place = core::printable(registry.string());
  const std::string text = core::read_file(registry, kMaxBytes, core::ExitCode::kUsage);
  try {
    const Json json = Json::parse(text);
    check_version(json, place);
    return catalog_with(added_rows(json));
  } catch (const core::UsageError& error) {
    if (error.place() == place) throw;
    throw core::UsageError(place, fmt::format("{} {}", error.place(), error.found()), kRemedy);
  } catch (const std::exception& error) {
    throw core::UsageError(place, fmt::format("is damaged: {}", core::printable(error.what())),
                           kRemedy);
  }
}

CatalogPtr catalog_of(const fs::path& worker) {
  std::error_code ignored;
  const fs::path beside = registry_of(worker);
  if (fs::exists(beside, ignored)) return read_catalog(beside);
  const fs::path linked = registry_of(fs::canonical(worker, ignored));
  if (fs::exists(linked, ignored)) return read_catalog(linked);
  Catalog catalog = *built_in_catalog();
  catalog.models.missing = beside.string();
  return std::make_shared<const Catalog>(std::move(catalog));
}

}  // namespace scaletrain::recipe
