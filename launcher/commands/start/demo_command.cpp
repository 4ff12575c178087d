// `demo`: a whole run without any file of a person.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/launch_command.h"
#include "launcher/commands/run_status.h"
#include "launcher/commands/watch/metrics_follower.h"
#include "launcher/commands/watch/watch_screen.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/data_program.h"
#include "launcher/platform/captured.h"
#include "launcher/platform/scratch_folder.h"
#include "launcher/runs/run_record.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/text.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kClasses = 6;

struct DemoArguments {
  std::string output = "demo";
  int minutes = 0;  // 0: seconds
};

struct DemoSet {
  const char* name;
  int samples, seed;
};
constexpr DemoSet kTrain{"train", 1800, 1}, kVal{"val", 300, 2}, kTest{"test", 300, 3};

void draw(const fs::path& shards) {
  for (const DemoSet& set : {kTrain, kVal, kTest}) {
    ask_data_program(
        {.arguments = {"synth", shards.string(), "--name", set.name, "--samples",
                       std::to_string(set.samples), "--seed", std::to_string(set.seed), "--classes",
                       std::to_string(kClasses), "--size", "32", "--distinct"},
         .key = "demo",
         .place = shards.string(),
         .what = "the pictures"});
  }
  core::log("{}: drew {} pictures of {} classes", core::printable(shards.string()),
            kTrain.samples + kVal.samples + kTest.samples, kClasses);
}

Json source(const fs::path& shards, const DemoSet& set) {
  return {{"shards", (shards / (std::string(set.name) + "-000000.tar")).string()}};
}

// An MLP learns the pictures in seconds on one core, a ResNet-18 in minutes.
Json demo_recipe(const fs::path& folder, bool is_short) {
  const fs::path shards = folder / "shards";
  Json recipe{
      {"$schema", "./recipe.schema.json"},
      {"description", "Made by scaletrain demo: coloured shapes, drawn by scaletrain data synth."},
      {"name", "demo"},
      {"seed", 7}};
  recipe["model"] = {{"name", is_short ? "mlp" : "resnet18"}, {"num_classes", kClasses}};
  if (is_short) recipe["model"]["hidden"] = 256;
  recipe["data"] = {{"train", source(shards, kTrain)},
                    {"val", source(shards, kVal)},
                    {"test", source(shards, kTest)},
                    {"image_size", is_short ? 16 : 32},
                    {"threads", 1}};
  recipe["data"]["train"]["cache"] = "memory";
  recipe["batch"] = {{"per_device", 32}};
  recipe["epochs"] = is_short ? 10 : 1;
  recipe["optimizer"] = {{"name", "adamw"}, {"lr", 0.001}};
  recipe["schedule"] = {{"warmup", {{"steps", 20}}}, {"decay", "cosine"}};
  recipe["validate"] = {{"every", {{"epochs", 1}}}};
  recipe["checkpoint"] = {{"every", {{"epochs", is_short ? 5 : 1}}}, {"keep_last", 1}};
  recipe["log"] = {{"every", {{"steps", 10}}}, {"images", true}};
  recipe["output"] = (folder / "run").string();
  return recipe;
}

void write_recipe(const fs::path& file, const Json& recipe) {
  core::write_durably(core::system_disk(), file, core::json_text(recipe, 2) + "\n");
}

// Seconds from the first step of a run of one epoch to the end of its validation.
double epoch_seconds(const fs::path& run) {
  const RunRecord record = read_run(run, run.string());
  const auto validated = record.evaluated.find("val");
  if (record.trained.empty() || validated == record.evaluated.end()) {
    throw core::DataError(run.string(), "has no epoch with a validation", "run scaletrain doctor");
  }
  const auto time_of = [](const RunJson& line) { return number_of(line, "time").value_or(0); };
  return time_of(validated->second.rbegin()->second) - time_of(record.trained.begin()->second);
}

// Trains one epoch in a separate run. Returns the number of epochs that take `minutes`.
std::int64_t epochs_of(int minutes, const fs::path& recipe) {
  constexpr std::chrono::minutes kTrialTimeout{30};
  ScratchFolder scratch("scaletrain-demo-");
  const fs::path run = scratch.file("run");
  const Captured done =
      run_captured({.arguments = {core::program_beside_us("scaletrain"), "launch", "--nproc", "1",
                                  recipe.string(), "--set", "output=" + run.string()},
                    .variables = {}},
                   kTrialTimeout, &scratch.stops());
  if (done.stop_signal != 0) throw_stopped("the first epoch", done.stop_signal);
  if (!done.ok()) {
    throw core::UsageError("--minutes", "the first epoch ended: " + done.trouble(),
                           "run scaletrain doctor");
  }
  const double epoch_s = std::max(epoch_seconds(run), 0.001);
  const auto epochs = std::max<std::int64_t>(1, std::llround(std::floor(minutes * 60 / epoch_s)));
  core::log("an epoch takes {:.1f} s here: training {} in about {}", epoch_s,
            core::counted(epochs, "epoch"), core::counted(minutes, "minute"));
  return epochs;
}

void show_curves(const fs::path& run) {
  constexpr ScreenSize kSize{.width = 80, .height = 20};
  MetricsFollower metrics(run / "metrics.jsonl");
  metrics.read();
  for (const std::string& line : watch_screen(run_status(run), metrics.curves(), {}, kSize)) {
    std::fputs((line + "\n").c_str(), stdout);
  }
}

void show_next(const fs::path& folder) {
  const std::string run = core::shell_word((folder / "run").string());
  const std::string shard = core::shell_word((folder / "shards" / "test-000000.tar").string());
  const std::string page = core::shell_word((folder / "report.html").string());
  const std::vector<std::string> commands{
      "scaletrain status " + run, "scaletrain watch " + run,
      fmt::format("scaletrain report {} -o {}", run, page),
      fmt::format("scaletrain eval {} --on test", run),
      fmt::format("scaletrain predict {} {} --top 1 --csv", run, shard)};
  std::fputs("\nTry next:\n", stdout);
  for (const std::string& command : commands) std::fputs(("  " + command + "\n").c_str(), stdout);
  std::fputs("Your own pictures:\n  scaletrain recipe new --data FOLDER\n", stdout);
}

int run_demo(const DemoArguments& arguments) {
  const fs::path folder = arguments.output;
  std::error_code ignored;
  if (fs::exists(folder, ignored)) {
    throw core::UsageError("--output",
                           fmt::format("{} exists already", core::printable(folder.string())),
                           "name another folder, or remove it");
  }
  core::Disk& disk = core::system_disk();
  disk.make_folders(folder);
  draw(folder / "shards");
  core::write_durably(disk, folder / "recipe.schema.json", recipe::json_schema());
  const fs::path recipe = folder / "recipe.json";
  Json keys = demo_recipe(folder, arguments.minutes == 0);
  write_recipe(recipe, keys);
  if (arguments.minutes > 0) {
    keys["epochs"] = epochs_of(arguments.minutes, recipe);
    write_recipe(recipe, keys);
  }
  LaunchOptions options;
  options.nproc = "1";
  options.path = recipe.string();
  const int status = launch_recipe(options, false);
  if (status != 0) return status;
  show_curves(folder / "run");
  show_next(folder);
  return 0;
}

}  // namespace

void add_demo_command(CLI::App& app, int& exit_status) {
  constexpr int kMostMinutes = 600;
  const auto arguments = std::make_shared<DemoArguments>();
  CLI::App* const command = app.add_subcommand(
      "demo", "Draw labelled pictures, train a small model on them and show what to try next.");
  command
      ->add_option("--minutes", arguments->minutes,
                   "Trains a ResNet-18 for about N minutes, after a first epoch that measures how "
                   "many epochs that are. Default: an MLP for some seconds.")
      ->type_name("N")
      ->check(CLI::Range(1, kMostMinutes));
  command->add_option("--output", arguments->output,
                      "New folder for pictures, recipe and run. Default: demo.");
  command->callback([arguments, &exit_status] { exit_status = run_demo(*arguments); });
}

}  // namespace scaletrain::launcher
