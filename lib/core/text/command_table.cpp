#include "lib/core/text/command_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

using TableJson = nlohmann::ordered_json;

// Turns "List the shards" into "List the shards."; a first word that is a value or a flag keeps its
// case.
std::string sentence(std::string text) {
  if (text.empty()) return text;
  const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  if (end > 0 && (end == std::string::npos || text[end] == ' ')) {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  if (text.find_last_of(".?!:") != text.size() - 1) text += '.';
  return text;
}

// Returns the values of "{jpeg,png}"; empty if `rule` has another form.
std::vector<std::string> values_of_rule(const std::string& rule) {
  std::vector<std::string> values;
  if (rule.size() < 2 || rule.front() != '{' || rule.back() != '}') return values;
  std::istringstream text(rule.substr(1, rule.size() - 2));
  for (std::string value; std::getline(text, value, ',');) values.push_back(value);
  return values;
}

// Returns "from 1 to 64" for "INT in [1 - 64]", the description of a CLI::Range.
std::string limits_of_rule(const std::string& rule) {
  if (rule == "NONNEGATIVE") return "0 or more";
  if (rule == "POSITIVE") return "more than 0";
  const std::size_t open = rule.find(" in [");
  const std::size_t middle = rule.find(" - ", open);
  if (open == std::string::npos || middle == std::string::npos || rule.back() != ']') return rule;
  const std::string low = rule.substr(open + 5, middle - open - 5);
  const std::string high = rule.substr(middle + 3, rule.size() - middle - 4);
  return "from " + low + " to " + high;
}

// CLI11 describes the type and the rules of a value in one text: "INT:INT in [1 - 64]".
void add_value(const CLI::Option& option, Flag& flag) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  const std::string name = type.substr(0, colon);
  flag.value = name.empty() || name == "TEXT" ? "VALUE" : name == "UINT" ? "INT" : name;
  if (colon != std::string::npos) {
    flag.allowed = values_of_rule(type.substr(colon + 1));
    if (flag.allowed.empty()) flag.limits = limits_of_rule(type.substr(colon + 1));
  }
  const std::string text = option.get_default_str();
  const bool is_named = flag.help.find("efault") != std::string::npos;
  if (text != "[]" && text != "{}" && !is_named) flag.default_value = text;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag{.names = {},
            .help = sentence(option.get_description()),
            .variable = option.get_envname(),
            .takes_value = option.get_items_expected_max() > 0};
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    if (name.find('_') == std::string::npos) flag.names.push_back("--" + name);
  }
  if (option.get_positional()) flag.names = {option.get_name(true, false)};
  flag.group = option.get_group();
  if (flag.takes_value) add_value(option, flag);
  for (const CLI::Option* other : option.get_excludes()) flag.excludes.push_back(other->get_name());
  std::sort(flag.excludes.begin(), flag.excludes.end());
  flag.required = option.get_required();
  flag.repeatable = option.get_items_expected_max() > 1;
  return flag;
}

TableJson as_json(const Flag& flag) {
  return {{"names", flag.names},
          {"help", flag.help},
          {"variable", flag.variable},
          {"takes_value", flag.takes_value},
          {"group", flag.group},
          {"value", flag.value},
          {"default_value", flag.default_value},
          {"allowed", flag.allowed},
          {"limits", flag.limits},
          {"excludes", flag.excludes},
          {"required", flag.required},
          {"repeatable", flag.repeatable}};
}

TableJson as_json(const Command& command) {
  auto flags = TableJson::array();
  for (const Flag& flag : command.flags) flags.push_back(as_json(flag));
  auto commands = TableJson::array();
  for (const Command& below : command.commands) commands.push_back(as_json(below));
  return {{"name", command.name},
          {"help", command.help},
          {"examples", command.examples},
          {"flags", flags},
          {"commands", commands},
          {"group", command.group},
          {"needs_command", command.needs_command}};
}

Flag flag_from_json(const TableJson& json) {
  return {.names = json.at("names").get<std::vector<std::string>>(),
          .help = json.at("help").get<std::string>(),
          .variable = json.at("variable").get<std::string>(),
          .takes_value = json.at("takes_value").get<bool>(),
          .group = json.at("group").get<std::string>(),
          .value = json.at("value").get<std::string>(),
          .default_value = json.at("default_value").get<std::string>(),
          .allowed = json.at("allowed").get<std::vector<std::string>>(),
          .limits = json.at("limits").get<std::string>(),
          .excludes = json.at("excludes").get<std::vector<std::string>>(),
          .required = json.at("required").get<bool>(),
          .repeatable = json.at("repeatable").get<bool>()};
}

Command from_json(const TableJson& json) {
  Command command{.name = json.at("name").get<std::string>(),
                  .help = json.at("help").get<std::string>(),
                  .examples = json.at("examples").get<std::string>(),
                  .flags = {},
                  .commands = {},
                  .group = json.at("group").get<std::string>(),
                  .needs_command = json.at("needs_command").get<bool>()};
  for (const TableJson& flag : json.at("flags")) command.flags.push_back(flag_from_json(flag));
  for (const TableJson& below : json.at("commands")) command.commands.push_back(from_json(below));
  return command;
}

}  // namespace

const Command* Command::find(const std::string& command) const {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& one) { return one.name == command; });
  return found == commands.end() ? nullptr : &*found;
}

const Flag* Command::find_flag(const std::string& flag_name) const {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) {
    return std::find(flag.names.begin(), flag.names.end(), flag_name) != flag.names.end();
  });
  return found == flags.end() ? nullptr : &*found;
}

Command table_of(const CLI::App& app) {
  Command command{.name = app.get_name(),
                  .help = sentence(app.get_description()),
                  .examples = app.get_footer(),
                  .flags = {},
                  .commands = {},
                  .group = app.get_group() == "Subcommands" ? "Commands" : app.get_group(),
                  .needs_command = app.get_require_subcommand_min() > 0};
  for (const CLI::Option* option : app.get_options()) {
    Flag flag = flag_of(*option);
    if (!flag.group.empty() && !flag.names.empty()) command.flags.push_back(std::move(flag));
  }
  for (const CLI::App* below : app.get_subcommands({}))
    command.commands.push_back(table_of(*below));
  return command;
}

std::string to_json(const Command& command) { return as_json(command).dump() + "\n"; }

Command parse_command_table(const std::string& text) {
  try {
    return from_json(TableJson::parse(text));
  } catch (const TableJson::exception& error) {
    throw UsageError("--command-table", error.what(), "the programs are of different versions");
  }
}

}  // namespace scaletrain::core
