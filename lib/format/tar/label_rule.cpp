#include "lib/format/tar/label_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/core/text/hash.h"
#include "lib/format/tar/label_text.h"

namespace scaletrain::format {
namespace {

std::optional<std::int64_t> number_of(const std::vector<std::string>& classes,
                                      std::string_view name) {
  const auto found = std::find(classes.begin(), classes.end(), name);
  if (found == classes.end()) return std::nullopt;
  return found - classes.begin();
}

std::optional<std::int64_t> class_in(const nlohmann::json& value,
                                     const std::vector<std::string>& classes) {
  if (value.is_string()) return number_of(classes, value.get_ref<const std::string&>());
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::optional<FoundLabel> LabelRule::parse(std::string_view text) const {
  if (key.empty()) {
    if (const auto number = parse_label(text)) return FoundLabel{*number};
    auto list = parse_labels(text);
    if (!list) return std::nullopt;
    return FoundLabel{-1, *std::move(list)};
  }
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  const nlohmann::json& value = object.at(key);
  if (!value.is_array()) {
    const auto number = class_in(value, classes);
    return number ? std::make_optional(FoundLabel{*number}) : std::nullopt;
  }
  FoundLabel found{-1};
  for (const nlohmann::json& one : value) {
    const auto number = class_in(one, classes);
    if (!number) return std::nullopt;
    found.list.push_back(*number);
  }
  return found;
}

std::optional<std::int64_t> LabelRule::class_of(std::string_view of_key) const {
  const std::size_t end = of_key.rfind('/');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view folder = of_key.substr(0, end);
  return number_of(classes, folder.substr(folder.rfind('/') + 1));
}

std::uint64_t LabelRule::digest() const {
  const bool has_names = of_folder() || !key.empty();
  if (field == "cls" && !has_names && !skips_incomplete) return 0;
  std::string text = fmt::format("{}\n{}\n{}\n", field, key, skips_incomplete);
  for (const std::string& name : has_names ? classes : std::vector<std::string>()) {
    text += fmt::format("{}:{}\n", name.size(), name);
  }
  return core::xxh3_64(text);
}

}  // namespace scaletrain::format
