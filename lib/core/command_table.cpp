#include "lib/core/command_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

using TableJson = nlohmann::ordered_json;

Flag flag_of(const CLI::Option& option) {
  Flag flag{.names = {},
            .help = option.get_description(),
            .variable = option.get_envname(),
            .takes_value = option.get_items_expected_max() > 0};
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    if (name.find('_') == std::string::npos) flag.names.push_back("--" + name);
  }
  if (option.get_positional()) flag.names = {option.get_name(true, false)};
  return flag;
}

TableJson as_json(const Command& command) {
  auto flags = TableJson::array();
  for (const Flag& flag : command.flags) {
    flags.push_back({{"names", flag.names},
                     {"help", flag.help},
                     {"variable", flag.variable},
                     {"takes_value", flag.takes_value}});
  }
  auto commands = TableJson::array();
  for (const Command& below : command.commands) commands.push_back(as_json(below));
  return {{"name", command.name},
          {"help", command.help},
          {"footer", command.footer},
          {"flags", flags},
          {"commands", commands}};
}

Command from_json(const TableJson& json) {
  Command command{.name = json.at("name").get<std::string>(),
                  .help = json.at("help").get<std::string>(),
                  .footer = json.at("footer").get<std::string>(),
                  .flags = {},
                  .commands = {}};
  for (const TableJson& flag : json.at("flags")) {
    command.flags.push_back({.names = flag.at("names").get<std::vector<std::string>>(),
                             .help = flag.at("help").get<std::string>(),
                             .variable = flag.at("variable").get<std::string>(),
                             .takes_value = flag.at("takes_value").get<bool>()});
  }
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
                  .help = app.get_description(),
                  .footer = app.get_footer(),
                  .flags = {},
                  .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    Flag flag = flag_of(*option);
    if (!flag.names.empty()) command.flags.push_back(std::move(flag));
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
