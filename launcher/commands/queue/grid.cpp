#include "launcher/commands/queue/grid.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kMostRuns = 10'000;
constexpr std::size_t kLongestName = 80;

// Returns the elements of a JSON list as written, separated at commas outside of strings, lists and
// objects.
std::vector<std::string> written_elements(const std::string& list) {
  std::vector<std::string> result{""};
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 1; i + 1 < list.size(); ++i) {
    const char letter = list[i];
    if (in_text && letter == '\\') {
      result.back() += letter;
      result.back() += list[++i];
      continue;
    }
    if (letter == '"') in_text = !in_text;
    if (!in_text && (letter == '[' || letter == '{')) ++depth;
    if (!in_text && (letter == ']' || letter == '}')) --depth;
    if (letter == ',' && !in_text && depth == 0) {
      result.emplace_back();
    } else {
      result.back() += letter;
    }
  }
  for (std::string& element : result) {
    element.erase(0, element.find_first_not_of(" \t\n"));
    element.erase(element.find_last_not_of(" \t\n") + 1);
  }
  return result;
}

[[noreturn]] void refuse_axis(const std::string& text, const std::string& why) {
  throw core::UsageError("sweep", fmt::format("\"{}\" {}", core::printable(text), why),
                         "give KEY=[VALUE,VALUE,...]: 'optimizer.lr=[1e-4,3e-4]'");
}

void append_plain(std::string& name, const std::string& text) {
  for (const char letter : text) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' ||
                          letter == '-';
    if (is_plain) name += letter;
  }
}

// FNV-1a: names that lost letters stay different.
std::uint32_t hash_number(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  return hash;
}

}  // namespace

Axis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse_axis(text, "is not KEY=[VALUES]");
  Axis axis{.key = text.substr(0, equals), .values = {}};
  const std::string written = text.substr(equals + 1);
  if (!written.starts_with("[")) {
    if (written.empty()) refuse_axis(text, "has no value");
    const bool is_object_or_text = written[0] == '{' || written[0] == '"';
    if (!is_object_or_text && written.find(',') != std::string::npos) {
      refuse_axis(text, "has values without brackets");
    }
    axis.values = {written};
    return axis;
  }
  const nlohmann::json list = nlohmann::json::parse(written, nullptr, false);
  if (!list.is_array()) refuse_axis(text, "is not a JSON list");
  if (list.empty()) refuse_axis(text, "has no value");
  axis.values = written_elements(written);
  const std::set<std::string> different(axis.values.begin(), axis.values.end());
  if (different.size() < axis.values.size()) refuse_axis(text, "has a value twice");
  return axis;
}

std::vector<std::vector<std::pair<std::string, std::string>>> combinations(
    const std::vector<Axis>& axes) {
  std::vector<std::vector<std::pair<std::string, std::string>>> result{{}};
  std::set<std::string> keys;
  for (const Axis& axis : axes) {
    if (!keys.insert(axis.key).second) refuse_axis(axis.key, "occurs twice");
    if (result.size() * axis.values.size() > kMostRuns) {
      throw core::UsageError("sweep", fmt::format("more than {} runs", kMostRuns),
                             "give fewer values");
    }
    std::vector<std::vector<std::pair<std::string, std::string>>> longer;
    longer.reserve(result.size() * axis.values.size());
    for (const auto& values : result) {
      for (const std::string& value : axis.values) {
        longer.push_back(values);
        longer.back().emplace_back(axis.key, value);
      }
    }
    result = std::move(longer);
  }
  return result;
}

std::string combination_name(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string name, whole;
  for (const auto& [key, value] : values) {
    if (!name.empty()) name += "_";
    append_plain(name, key.substr(key.rfind('.') + 1));
    name += "-";
    const std::size_t before = name.size();
    append_plain(name, value);
    const bool is_exact = name.size() - before == value.size();
    whole += fmt::format("{}={}{}", key, value, is_exact ? "," : "!,");
  }
  if (name.size() <= kLongestName && whole.find('!') == std::string::npos) return name;
  return fmt::format("{}_{:08x}", name.substr(0, kLongestName), hash_number(whole));
}

}  // namespace scaletrain::launcher
