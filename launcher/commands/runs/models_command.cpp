#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/runs/model_registry.h"
#include "launcher/runs/recipe_keys.h"
#include "launcher/runs/run_results.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"
#include "lib/observe/near_path.h"

namespace scaletrain::launcher {
namespace {

struct ModelsArguments {
  std::string registry = "models", name, path, stage = "none", to = "production", note;
  int version = 0;
  bool as_json = false;
};

void print_text(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string shown_field(const std::string& name, const RunJson& value) {
  if (name == "added" && value.is_number()) return local_time(value.get<double>());
  if (name == "step" && value.is_number()) return value_text("step", value.get<double>());
  return core::printable(observe::near_path(key_text(value)));
}

void print_models(const ModelsArguments& arguments) {
  const ModelRegistry registry(arguments.registry);
  RunJson models = RunJson::array();
  std::vector<std::vector<std::string>> table{{"model", "version", "stage", "step", "checkpoint"}};
  for (const std::string& name : registry.names()) {
    if (!arguments.name.empty() && name != arguments.name) continue;
    models.push_back(registry.model(name));
    for (const RunJson& version : models.back()["versions"]) {
      std::vector<std::string> line{name};
      for (const char* const field : {"version", "stage", "step", "checkpoint"}) {
        line.push_back(shown_field(field, version.value(field, RunJson())));
      }
      table.push_back(std::move(line));
    }
  }
  if (!arguments.name.empty() && models.empty()) registry.model(arguments.name);  // throws
  print_text(arguments.as_json ? core::json_text(models, 1) + "\n" : core::text_table(table));
}

std::string version_row(std::string name, const std::string& text) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("  {:<18} {}\n", core::printable(name), text);
}

// A heading with the stage, then the lineage and the results in the order of the file.
std::string version_text(const std::string& model, const RunJson& version) {
  std::string text = fmt::format("{} version {}: {}\n", core::printable(model),
                                 key_text(version.value("version", RunJson())),
                                 core::printable(key_text(version.value("stage", RunJson()))));
  for (const auto& field : version.items()) {
    const std::string& name = field.key();
    const RunJson& value = field.value();
    if (name == "version" || name == "stage" || value.is_null() || value == "") continue;
    if (name == "results") {
      for (const auto& one : value.items()) {
        if (!one.value().is_number()) continue;
        const std::string label = one.key() == "step" ? "last step" : value_label(one.key());
        text += version_row(label, value_text(one.key(), one.value()));
      }
    } else if (value.is_object()) {
      for (const auto& one : value.items()) {
        text += version_row(name + " " + one.key(), shown_field(one.key(), one.value()));
      }
    } else {
      text += version_row(name, shown_field(name, value));
    }
  }
  return text;
}

void print_model(const ModelsArguments& arguments) {
  const ModelRegistry registry(arguments.registry);
  const RunJson model = registry.model(arguments.name);
  RunJson shown = model;
  std::vector<RunJson> versions(model["versions"].begin(), model["versions"].end());
  if (arguments.version > 0) {
    shown = registry.version(arguments.name, arguments.version);
    versions = {shown};
  }
  if (arguments.as_json) return print_text(core::json_text(shown, 1) + "\n");
  std::string text;
  for (const RunJson& version : versions) {
    text += (text.empty() ? "" : "\n") + version_text(arguments.name, version);
  }
  print_text(text);
}

// Adds a command of `models` with the flags that all of them have.
CLI::App* add_models_command(CLI::App& models, const char* name, const char* help,
                             const std::shared_ptr<ModelsArguments>& arguments) {
  CLI::App* const command = models.add_subcommand(name, help);
  command->add_option("--registry", arguments->registry,
                      "Folder of the registry. Default: models.");
  return command;
}

void add_model_name(CLI::App& command, const std::shared_ptr<ModelsArguments>& arguments) {
  command.add_option("NAME", arguments->name, "Name of the model.")->required();
}

void add_changes(CLI::App& models, const std::shared_ptr<ModelsArguments>& arguments,
                 int& exit_status) {
  CLI::App* const add = add_models_command(
      models, "add", "Register a checkpoint as the next version of a model.", arguments);
  add_model_name(*add, arguments);
  add->add_option("PATH", arguments->path,
                  "A checkpoint, or a run, which stands for its best checkpoint.")
      ->required();
  add->add_option("--stage", arguments->stage, "Its stage: staging or production. Default: none.");
  add->add_option("--note", arguments->note, "A text that is kept with the version.");
  add->add_flag("--json", arguments->as_json, "Print the version as a JSON object.");
  add->callback([arguments, &exit_status] {
    const ModelRegistry registry(arguments->registry);
    const RunJson version =
        registry.add(arguments->name, arguments->path, arguments->stage, arguments->note);
    print_text(arguments->as_json ? core::json_text(version, 1) + "\n"
                                  : fmt::format("{} version {}: {}\n", arguments->name,
                                                version["version"].get<int>(),
                                                version["stage"].get<std::string>()));
    exit_status = 0;
  });
  CLI::App* const promote = add_models_command(
      models, "promote", "Move a version to a stage. The previous production version is archived.",
      arguments);
  add_model_name(*promote, arguments);
  promote->add_option("VERSION", arguments->version, "Number of the version.")->required();
  promote->add_option("--to", arguments->to,
                      "Stage: staging, production, archived or none. Default: production.");
  promote->callback([arguments, &exit_status] {
    ModelRegistry(arguments->registry).promote(arguments->name, arguments->version, arguments->to);
    print_text(
        fmt::format("{} version {}: {}\n", arguments->name, arguments->version, arguments->to));
    exit_status = 0;
  });
  CLI::App* const rollback = add_models_command(
      models, "rollback", "Restore the version that was in production before.", arguments);
  add_model_name(*rollback, arguments);
  rollback->callback([arguments, &exit_status] {
    const int version = ModelRegistry(arguments->registry).roll_back(arguments->name);
    print_text(fmt::format("{} version {}: production\n", arguments->name, version));
    exit_status = 0;
  });
}

}  // namespace

void add_models_commands(CLI::App& app, int& exit_status) {
  CLI::App* const models = app.add_subcommand(
      "models", "Register checkpoints as versions of models with stages and lineage.");
  models->require_subcommand(1);
  const auto arguments = std::make_shared<ModelsArguments>();
  add_changes(*models, arguments, exit_status);
  CLI::App* const list =
      add_models_command(*models, "ls", "List models with their versions and stages.", arguments);
  list->add_option("NAME", arguments->name, "One model instead of all.");
  list->add_flag("--json", arguments->as_json, "Print a JSON list.");
  list->callback([arguments, &exit_status] {
    print_models(*arguments);
    exit_status = 0;
  });
  CLI::App* const show = add_models_command(
      *models, "show", "Show a version with its lineage: run, digests, data cards.", arguments);
  add_model_name(*show, arguments);
  show->add_option("VERSION", arguments->version, "Number of the version. Default: all.");
  show->add_flag("--json", arguments->as_json, "Print a JSON object.");
  show->callback([arguments, &exit_status] {
    print_model(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
