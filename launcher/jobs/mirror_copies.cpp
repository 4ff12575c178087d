#include "launcher/jobs/mirror_copies.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/programs.h"
#include "lib/core/subprocess.h"
#include "lib/core/url.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

constexpr int kLookMs = 100;
constexpr double kSilentS = 5;
constexpr std::int64_t kMaxOutput = 64 << 20;
constexpr double kPatienceToLook = 30;  // seconds, for a list before a fresh start

// Signals wait while a job is made (StopSignals).
bool is_asked_to_stop() {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  return sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1;
}

std::string text_in(const core::Descriptor& file) {
  return core::read_file(core::path_of(file.get()), kMaxOutput, core::ExitCode::kFailure);
}

// What it warned of, a line each; the result: the rest, which is its error.
std::string pass_warnings_on(const std::string& text) {
  constexpr std::string_view kWarning = "warning: ";
  std::string rest;
  bool is_warning = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    is_warning = line.starts_with(kWarning) || (is_warning && line.starts_with("  "));
    if (line.starts_with(kWarning)) {
      core::warn("{}", line.substr(kWarning.size()));
    } else if (is_warning) {
      core::log("{}", line);
    } else {
      rest += (rest.empty() ? "" : "\n") + line;
    }
    begin = end + 1;
  }
  return rest;
}

// What `scaletrain data mirror PLACE FLAGS --json` prints.
nlohmann::json ask(const std::string& place, const std::vector<std::string>& flags,
                   std::vector<std::pair<int, int>> descriptors) {
  const core::Descriptor nothing = core::open_nothing();
  const core::Descriptor output = core::make_memory_file("scaletrain-copies");
  const core::Descriptor errors = core::make_memory_file("scaletrain-copies-errors");
  descriptors.insert(descriptors.end(), {{nothing.get(), STDIN_FILENO},
                                         {output.get(), STDOUT_FILENO},
                                         {errors.get(), STDERR_FILENO}});
  std::vector<std::string> arguments{core::program_beside_us("scaletrain-data"), "mirror", place,
                                     "--json"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const core::Process process = core::Process::spawn(
      {.arguments = std::move(arguments), .variables = {}, .descriptors = std::move(descriptors)});
  const core::SteadyTime since = core::now();
  bool has_said = false;
  while (!process.ended()) {
    if (core::seconds_since(since) > kSilentS && !std::exchange(has_said, true)) {
      core::log("{}: looking at the checkpoints there", core::shown_path(place));
    }
    pollfd watched{process.pidfd(), POLLIN, 0};
    poll(&watched, 1, kLookMs);
    if (!is_asked_to_stop()) continue;
    throw core::StoppedError(core::shown_path(place),
                             "was asked to stop while its checkpoints were looked at");
  }
  const core::ExitStatus status = *process.ended();
  const std::string rest = pass_warnings_on(text_in(errors));
  if (!status.ok()) {
    const auto code = static_cast<core::ExitCode>(status.signal != 0 ? 1 : status.code);
    throw core::Error(code, "/checkpoint/mirror", rest.empty() ? core::to_text(status) : rest);
  }
  return nlohmann::json::parse(text_in(output));
}

nlohmann::json ask(const recipe::Recipe& recipe, std::vector<std::string> flags) {
  const core::Descriptor file = core::make_memory_file("recipe.json", recipe::to_json(recipe));
  flags.insert(flags.end(), {"--recipe", core::path_of(file.get())});
  return ask(recipe.checkpoint.mirror, flags, {{file.get(), file.get()}});
}

std::string patience(const recipe::Recipe& recipe, double most_s) {
  return fmt::format("{}", std::min(most_s, recipe.storage.give_up_after_s));
}

}  // namespace

std::vector<std::int64_t> steps_in_mirror(const recipe::Recipe& recipe) {
  std::vector<std::int64_t> steps;
  const nlohmann::json found = ask(recipe, {"--patience", patience(recipe, kPatienceToLook)});
  steps.reserve(found.at("copies").size());
  for (const nlohmann::json& copy : found.at("copies")) steps.push_back(copy.at("step"));
  return steps;
}

std::optional<std::filesystem::path> fetch_from_mirror(const recipe::Recipe& recipe,
                                                       std::int64_t beyond,
                                                       std::optional<double> patience_s) {
  std::vector<std::string> flags{"--to", recipe.output, "--newer-than", std::to_string(beyond)};
  if (patience_s) flags.insert(flags.end(), {"--patience", patience(recipe, *patience_s)});
  const nlohmann::json found = ask(recipe, flags);
  if (found.at("checkpoint").is_null()) return std::nullopt;
  return found.at("checkpoint").get<std::string>();
}

std::string recipe_in_mirror(const std::string& place) {
  const nlohmann::json found = ask(place, {"--with-recipe"}, {});
  if (found.at("recipe").is_null()) {
    throw core::CheckpointError(core::shown_path(place), "there is no checkpoint in it",
                                "name what /checkpoint/mirror of the run's recipe names");
  }
  return found.at("recipe");
}

}  // namespace scaletrain::launcher
