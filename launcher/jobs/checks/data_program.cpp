#include "launcher/jobs/checks/data_program.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string_view>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/programs.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/url.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

constexpr int kLookMs = 100;
constexpr double kSilentS = 5;
constexpr std::int64_t kMaxOutput = 64 << 20;

// Signals wait while a job is made (StopSignals).
bool is_asked_to_stop() {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  return sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1;
}

std::string text_in(const core::Descriptor& file) {
  return core::read_file(core::path_of(file.get()), kMaxOutput, core::ExitCode::kFailure);
}

// Logs the program's warnings, one per line; returns the rest, which is its error.
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

core::ExitStatus wait_for(const core::Process& process, const DataQuestion& question) {
  const core::SteadyTime since = core::now();
  bool has_said = false;
  while (!process.ended()) {
    if (core::seconds_since(since) > kSilentS && !std::exchange(has_said, true)) {
      core::log("{}: looking at {} there", core::shown_path(question.place), question.what);
    }
    pollfd watched{process.pidfd(), POLLIN, 0};
    poll(&watched, 1, kLookMs);
    if (!is_asked_to_stop()) continue;
    throw core::StoppedError(core::shown_path(question.place),
                             fmt::format("was stopped while {} were checked", question.what));
  }
  return *process.ended();
}

}  // namespace

std::string ask_data_program(DataQuestion question, const recipe::Recipe* recipe) {
  const core::Descriptor nothing = core::open_nothing();
  const core::Descriptor output = core::make_memory_file("scaletrain-data");
  const core::Descriptor errors = core::make_memory_file("scaletrain-data-errors");
  std::vector<std::pair<int, int>> descriptors{
      {nothing.get(), STDIN_FILENO}, {output.get(), STDOUT_FILENO}, {errors.get(), STDERR_FILENO}};
  std::optional<core::Descriptor> file;
  if (recipe != nullptr) {
    file = core::make_memory_file("recipe.json", recipe::to_json(*recipe));
    question.arguments.insert(question.arguments.end(), {"--recipe", core::path_of(file->get())});
    descriptors.emplace_back(file->get(), file->get());
  }
  question.arguments.insert(question.arguments.begin(), core::program_beside_us("scaletrain-data"));
  const core::Process process = core::Process::spawn({.arguments = std::move(question.arguments),
                                                      .variables = {},
                                                      .descriptors = std::move(descriptors)});
  const core::ExitStatus status = wait_for(process, question);
  const std::string rest = pass_warnings_on(text_in(errors));
  if (!status.ok()) {
    const auto code = static_cast<core::ExitCode>(status.signal != 0 ? 1 : status.code);
    throw core::Error(code, question.key, rest.empty() ? core::to_text(status) : rest);
  }
  return text_in(output);
}

}  // namespace scaletrain::launcher
