#include "launcher/commands/explain/flag_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace scaletrain::launcher {
namespace {

// Returns the word by which the user gave the option; "" if it was not given.
std::string word_of(const CLI::Option& option, const Words& words) {
  for (const std::string& word : words) {
    for (const std::string& name : option.get_lnames()) {
      if (word == "--" + name || word.starts_with("--" + name + "=")) return "--" + name;
    }
    for (const std::string& name : option.get_snames()) {
      if (word.starts_with("-" + name) && !word.starts_with("--")) return "-" + name;
    }
  }
  return "";
}

}  // namespace

std::string long_name(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return std::find(names.begin(), names.end(), "nproc") != names.end() ? "nproc" : names.front();
}

std::string origin(const CLI::Option& option, const Words& words) {
  std::string word = word_of(option, words);
  if (!word.empty()) return word;
  return option.count() > 0 ? option.get_envname() : "default";
}

std::string given_value(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    const std::string given = option.count() > 0 ? option.results().back() : "";
    return given == "true" || given == "1" ? "on" : "off";
  }
  if (option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast) {
    return option.results().back();
  }
  return fmt::format("{}", fmt::join(option.results(), " "));
}

std::vector<Explained> flag_rows(const CLI::App& command, const Words& words) {
  std::vector<Explained> rows;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string name = long_name(*option);
    if (name == "help" || name == "json") continue;
    const bool given = option->get_items_expected_max() == 0 || option->count() > 0;
    rows.push_back({.name = name,
                    .value = given ? given_value(*option) : option->get_default_str(),
                    .from = origin(*option, words)});
  }
  return rows;
}

}  // namespace scaletrain::launcher
