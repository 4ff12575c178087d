// `lr-find`: learning rate range test of a recipe (L. N. Smith, 2015).
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/lr_find/range_curve.h"
#include "launcher/commands/lr_find/range_picture.h"
#include "launcher/commands/trial_recipe.h"
#include "launcher/commands/watch/metrics_follower.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/platform/scratch_folder.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/programs.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/shell_word.h"
#include "lib/observe/plot.h"
#include "lib/observe/terminal.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct LrFindArguments {
  LaunchOptions recipe;  // path, --nproc, --set, --worker
  RateRange range;
  std::string picture;  // file; "": none
  bool json = false;
};

enum class RangeEnd { kWhole, kDiverged, kNotFinite };

struct RangeResult {
  std::vector<RangePoint> points{};
  std::vector<double> smoothed{};  // once the test has ended
  std::optional<RangeEnd> end{};   // nullopt: it still trains, or it failed
};

void refuse_range(const RateRange& range) {
  if (range.from < range.to) return;
  throw core::UsageError("--from", fmt::format("{:g} is not below --to {:g}", range.from, range.to),
                         "the learning rate grows from --from to --to: exchange them");
}

// Training continues after the last rate until this command has read that step and stops it, since
// a run that ends by itself would save its weights.
recipe::Recipe range_recipe(const LrFindArguments& arguments, const fs::path& run) {
  constexpr std::int64_t kSpareSteps = 1000;
  const RateRange& range = arguments.range;
  recipe::Recipe recipe = run_to_launch(arguments.recipe).recipe;
  make_trial(range.steps + kSpareSteps, 1, recipe);
  recipe.optimizer.lr = range.to;
  recipe.schedule.warmup = {recipe::Duration::Unit::kSteps, static_cast<double>(range.steps)};
  recipe.schedule.warmup_from = range.warmup_from();
  recipe.schedule.warmup_shape = "exponential";
  recipe.output = run.string();
  return recipe;
}

// The rates are those of optimizer.lr, which lr_base_batch scales.
RangeResult range_result(const std::vector<observe::PlotPoint>& losses, const RateRange& range) {
  RangeResult result;
  for (const observe::PlotPoint& loss : losses) {
    const auto step = static_cast<std::int64_t>(loss.x);
    if (step > range.steps) break;
    if (!std::isfinite(loss.y)) {
      result.end = RangeEnd::kNotFinite;
      break;
    }
    result.points.push_back({.lr = range.at(step), .loss = loss.y});
    if (step == range.steps) result.end = RangeEnd::kWhole;
  }
  const double width = smoothing_width(range.steps);
  if (const auto count = steps_until_diverged(result.points, width)) {
    result.points.resize(*count);
    result.end = RangeEnd::kDiverged;
  }
  if (result.end) result.smoothed = smoothed_loss(result.points, width);
  return result;
}

core::Process start_launch(const LrFindArguments& arguments, const fs::path& recipe,
                           const fs::path& log) {
  const core::Descriptor nothing = core::open_nothing();
  const core::Descriptor output = core::open_to_append(log, "check the temporary folder");
  std::vector<std::string> words{core::program_beside_us("scaletrain"), "launch", "--nnodes", "1"};
  if (!arguments.recipe.nproc.empty()) {
    words.insert(words.end(), {"--nproc", arguments.recipe.nproc});
  }
  words.push_back(recipe.string());
  return core::Process::spawn({.arguments = words,
                               .variables = {},
                               .descriptors = {{nothing.get(), STDIN_FILENO},
                                               {output.get(), STDOUT_FILENO},
                                               {output.get(), STDERR_FILENO}}});
}

// Follows the metrics of the launch until its end, and ends it once the test is over. Throws
// core::Error if a signal stopped this command.
std::pair<RangeResult, core::ExitStatus> follow(const core::Process& launch, const fs::path& run,
                                                const RateRange& range, StopSignals& stops) {
  constexpr int kPollMs = 100;
  MetricsFollower metrics(run / "metrics.jsonl");
  RangeResult result;
  int stop_signal = 0;
  std::optional<core::ExitStatus> status;
  while (!status) {
    std::array<pollfd, 2> watched{pollfd{launch.pidfd(), POLLIN, 0}, pollfd{stops.fd(), POLLIN, 0}};
    poll(watched.data(), watched.size(), kPollMs);
    status = launch.ended();
    if (const std::optional<int> signal = stops.next()) stop_signal = *signal;
    metrics.read();
    result = range_result(metrics.curves().loss, range);
    // The second SIGINT kills the workers, which have nothing to save.
    if (!status && (stop_signal != 0 || result.end)) kill(launch.pid(), SIGINT);
  }
  if (stop_signal != 0) throw_stopped("lr-find", stop_signal);
  return {std::move(result), *status};
}

std::string why_ended(const RangeResult& result, const RateRange& range) {
  const std::string steps = fmt::format("{} of {} steps", result.points.size(), range.steps);
  switch (result.end.value_or(RangeEnd::kWhole)) {
    case RangeEnd::kDiverged:
      return steps + ", until the loss was 4 times its lowest";
    case RangeEnd::kNotFinite:
      return steps + ", until the loss was not finite";
    case RangeEnd::kWhole:
      break;
  }
  return steps;
}

std::string use_command(const LrFindArguments& arguments, double lr) {
  std::string text = "scaletrain launch";
  if (!arguments.recipe.nproc.empty()) {
    text += " --nproc " + core::shell_word(arguments.recipe.nproc);
  }
  for (const std::string& set : arguments.recipe.set) {
    text += " --set " + core::shell_word(set);
  }
  return text +
         fmt::format(" --set optimizer.lr={:.2g} {}", lr, core::shell_word(arguments.recipe.path));
}

std::vector<std::string> chart_rows(const RangeResult& result) {
  constexpr int kMostColumns = 100, kChartRows = 12, kFewestColumns = 40;
  std::vector<observe::PlotPoint> points;
  for (const RangePoint& point : shown_points(result.points, result.smoothed)) {
    points.push_back({.x = point.lr, .y = point.loss});
  }
  const int width = std::clamp(observe::columns(STDOUT_FILENO), kFewestColumns, kMostColumns);
  return observe::draw_chart(points, width, kChartRows, observe::Scale::kLogarithmic, nullptr,
                             "learning rate");
}

std::string result_text(const LrFindArguments& arguments, const std::string& name,
                        const RangeResult& result,
                        const std::optional<RateSuggestion>& suggestion) {
  std::string text =
      fmt::format("{}: learning rate {:g} to {:g}\n{}\nsmoothed loss\n", core::printable(name),
                  arguments.range.from, arguments.range.to, why_ended(result, arguments.range));
  for (const std::string& row : chart_rows(result)) text += row + "\n";
  if (suggestion) {
    text += fmt::format(
        "suggestion  {:<8.2g} steepest descent of the smoothed loss\n"
        "            {:<8.2g} a tenth of {:.2g}, the rate with the lowest loss\n"
        "use it      {}\n",
        suggestion->steepest, suggestion->best / 10, suggestion->best,
        core::printable(use_command(arguments, suggestion->steepest)));
  } else {
    text +=
        "no suggestion: the loss does not fall clearly at any of these rates. Give another range "
        "(--from, --to)\nor more --steps, or check the recipe: scaletrain launch --overfit 16 "
        "RECIPE\n";
  }
  if (!arguments.picture.empty()) {
    text += "picture     " + core::printable(arguments.picture) + "\n";
  }
  return text;
}

Json result_json(const LrFindArguments& arguments, const RangeResult& result,
                 const std::optional<RateSuggestion>& suggestion) {
  const char* end = "steps";
  if (result.end == RangeEnd::kDiverged) end = "diverged";
  if (result.end == RangeEnd::kNotFinite) end = "not_finite";
  Json json{{"recipe", arguments.recipe.path},
            {"from", arguments.range.from},
            {"to", arguments.range.to},
            {"steps", arguments.range.steps},
            {"end", end},
            {"suggestion", nullptr},
            {"tenth_of_best", nullptr},
            {"best", nullptr}};
  if (suggestion) {
    json["suggestion"] = suggestion->steepest;
    json["tenth_of_best"] = suggestion->best / 10;
    json["best"] = suggestion->best;
  }
  json["points"] = Json::array();
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    json["points"].push_back({{"step", i + 1},
                              {"lr", result.points[i].lr},
                              {"loss", result.points[i].loss},
                              {"smoothed", result.smoothed[i]}});
  }
  return json;
}

void write_picture(const fs::path& file, const std::string& picture) {
  core::Disk& disk = core::system_disk();
  if (file.has_parent_path()) disk.make_folders(file.parent_path());
  core::write_durably(disk, file, picture);
}

// Prints the end of the launch's log; returns its exit status.
int show_failure(const fs::path& log, const core::ExitStatus& status) {
  constexpr std::int64_t kMostLogBytes = 1 << 28;
  constexpr std::size_t kLastBytes = 8192;
  std::string text = core::read_file(log, kMostLogBytes, core::ExitCode::kData);
  if (text.size() > kLastBytes) text.erase(0, text.find('\n', text.size() - kLastBytes) + 1);
  std::fputs(text.c_str(), stderr);
  return status.ok() ? 1 : status.shell_code();
}

int run_lr_find(const LrFindArguments& arguments) {
  refuse_range(arguments.range);
  ScratchFolder scratch("scaletrain-lr-find-");
  const fs::path recipe = scratch.file("recipe.json"), log = scratch.file("launch.log");
  const recipe::Recipe changed = range_recipe(arguments, scratch.file("run"));
  core::write_durably(core::system_disk(), recipe, recipe::to_json(changed));
  core::log("{}: training up to {} steps with a growing learning rate",
            core::printable(arguments.recipe.path), arguments.range.steps);
  const core::Process launch = start_launch(arguments, recipe, log);
  const auto [result, status] =
      follow(launch, scratch.file("run"), arguments.range, scratch.stops());
  if (!result.end) return show_failure(log, status);
  const std::optional<RateSuggestion> suggestion =
      suggest_rate(result.points, result.smoothed, smoothing_width(arguments.range.steps));
  if (!arguments.picture.empty()) {
    write_picture(arguments.picture, range_picture(changed.name + ": learning rate range test",
                                                   result.points, result.smoothed, suggestion));
  }
  const std::string text =
      arguments.json ? core::json_text(result_json(arguments, result, suggestion), 2) + "\n"
                     : result_text(arguments, changed.name, result, suggestion);
  std::fputs(text.c_str(), stdout);
  return suggestion ? 0 : 1;
}

}  // namespace

void add_lr_find_command(CLI::App& app, int& exit_status) {
  constexpr double kLeastRate = 1e-30, kMostRate = 1000;
  constexpr std::int64_t kFewestSteps = 10, kMostSteps = 10000;
  const auto arguments = std::make_shared<LrFindArguments>();
  CLI::App* const command = app.add_subcommand(
      "lr-find",
      "Find a learning rate: a range test of a recipe, with its curve and a suggestion.");
  command->add_option("RECIPE", arguments->recipe.path, "Recipe to test.")->required();
  command->add_option("--nproc", arguments->recipe.nproc,
                      "Number of ranks on this machine; `gpu` starts one for each device. "
                      "Default: 1.");
  command->add_option("--from", arguments->range.from, "Learning rate of the first step.")
      ->check(CLI::Range(kLeastRate, kMostRate))
      ->capture_default_str();
  command->add_option("--to", arguments->range.to, "Learning rate of the last step.")
      ->check(CLI::Range(kLeastRate, kMostRate))
      ->capture_default_str();
  command
      ->add_option("--steps", arguments->range.steps,
                   "Number of steps. The learning rate grows by the same factor each step.")
      ->check(CLI::Range(kFewestSteps, kMostSteps))
      ->capture_default_str();
  command
      ->add_option("--set", arguments->recipe.set,
                   "Overrides a key, for example optimizer.name=lamb. Repeatable.")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--worker", arguments->recipe.worker,
                      "Path of a worker program of your own, with its models.");
  command->add_option("-o,--output", arguments->picture, "SVG file of the curve. Default: none.");
  command->add_flag("--json", arguments->json, "Print one JSON object instead of text.");
  command->callback([arguments, &exit_status] { exit_status = run_lr_find(*arguments); });
}

}  // namespace scaletrain::launcher
