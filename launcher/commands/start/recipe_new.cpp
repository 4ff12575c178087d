#include "launcher/commands/start/recipe_new.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "launcher/commands/start/find_data.h"
#include "launcher/commands/start/new_recipe.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/shell_word.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

struct NewArguments {
  std::string data, model, output;
};

void write_new(const fs::path& file, const std::string& text) {
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    throw core::UsageError(core::printable(file.string()), "exists already",
                           "name another file with -o, or remove it");
  }
  core::Disk& disk = core::system_disk();
  if (file.has_parent_path()) disk.make_folders(file.parent_path());
  core::write_durably(disk, file, text);
}

// The commands are written to standard output: the user runs them next.
void make_recipe(const NewArguments& arguments) {
  const FoundData found = find_data(arguments.data);
  std::string next;
  for (const std::string& command : found.commands) next += command + "\n";
  if (!found.is_known()) {
    if (found.commands.empty()) {
      throw core::DataError(core::printable(arguments.data), "has no sample",
                            "check that it is the training data");
    }
    core::log("this data is prepared first; the recipe follows from the result");
    std::fputs(next.c_str(), stdout);
    return;
  }
  const std::string text = core::json_text(new_recipe(found, arguments.model), 2) + "\n";
  if (arguments.output == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  const std::string file = arguments.output.empty() ? found.name + ".json" : arguments.output;
  write_new(file, text);
  core::log("{}: {}", core::printable(file), found.kind);
  for (const std::string& remark : found.remarks) core::log("{}", core::printable(remark));
  next += fmt::format("scaletrain launch {}\n", core::shell_word(file));
  std::fputs(next.c_str(), stdout);
}

}  // namespace

void add_recipe_new(CLI::App& recipe, int& exit_status) {
  const auto arguments = std::make_shared<NewArguments>();
  CLI::App* const command =
      recipe.add_subcommand("new", "Write a recipe for your training data, without questions.");
  command
      ->add_option("--data", arguments->data,
                   "Image folder, tar shards, .csv list, token files or text of this machine.")
      ->required();
  command->add_option("--model", arguments->model,
                      "Model. Default: resnet18 for images, gpt2 for text.");
  command->add_option("-o,--output", arguments->output,
                      "File of the recipe, or - for standard output. Default: NAME.json.");
  command->callback([arguments, &exit_status] {
    make_recipe(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
