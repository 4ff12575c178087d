#include "launcher/jobs/metrics_export.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/url.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

constexpr std::chrono::seconds kDrain{5};
constexpr std::chrono::seconds kKill{1};
constexpr const char* kConsequence = "training continues without exports";

// Events of earlier jobs of the run end there.
std::uintmax_t journal_bytes(const std::filesystem::path& run) {
  std::error_code absent;
  const std::uintmax_t bytes = std::filesystem::file_size(run / "journal.jsonl", absent);
  return absent ? 0 : bytes;
}

bool is_wanted(const recipe::Log& log) {
  return !log.to.empty() || !log.webhook.empty() || !log.on_event.empty();
}

std::vector<std::string> export_command(const recipe::Recipe& recipe, const std::string& program) {
  std::vector<std::string> arguments{core::program_beside_us(program), "--run", recipe.output,
                                     "--name", recipe.name};
  for (const std::string& tracker : recipe.log.to) {
    arguments.insert(arguments.end(), {"--to", tracker});
  }
  if (recipe.log.port != 0) {
    arguments.insert(arguments.end(), {"--port", std::to_string(recipe.log.port)});
  }
  const auto add = [&arguments](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  add("--textfile-folder", recipe.log.textfile_folder);
  add("--webhook", recipe.log.webhook);
  add("--on-event", recipe.log.on_event);
  for (const std::string& event : recipe.log.events) add("--event", event);
  add("--journal-from", std::to_string(journal_bytes(recipe.output)));
  return arguments;
}

// True if the process ended before `end`.
bool ended_before(const core::Process& process, core::SteadyTime end) {
  while (!process.ended()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - core::now()).count();
    if (left <= 0) return false;
    pollfd watched{process.pidfd(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(left));
  }
  return true;
}

}  // namespace

MetricsExport::MetricsExport(const recipe::Recipe& recipe, const std::string& program)
    : log_(std::filesystem::path(recipe.output) / "logs" / "export.log") {
  if (!is_wanted(recipe.log)) return;
  try {
    start(recipe, program);
  } catch (const core::Error& error) {
    core::warn("export to trackers: {}: {}; {}", error.place(), error.found(), kConsequence);
  }
}

void MetricsExport::start(const recipe::Recipe& recipe, const std::string& program) {
  const core::Descriptor log =
      core::open_to_append(log_, "check the folder's permissions and free space");
  lifeline_ = core::make_pipe();
  report_ = core::make_memory_file("scaletrain-export");
  process_.emplace(core::Process::spawn({.arguments = export_command(recipe, program),
                                         .variables = {},
                                         .descriptors = {{lifeline_.read.get(), STDIN_FILENO},
                                                         {report_.get(), STDOUT_FILENO},
                                                         {log.get(), STDERR_FILENO}}}));
  lifeline_.read.reset();
}

std::optional<pid_t> MetricsExport::pid() const {
  return process_ ? std::optional(process_->pid()) : std::nullopt;
}

void MetricsExport::pass_on() {
  std::string text;
  std::array<char, 4096> block{};
  while (true) {
    const ssize_t count = pread(report_.get(), block.data(), block.size(),
                                reported_ + static_cast<std::int64_t>(text.size()));
    if (count <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  constexpr std::string_view kWarning = "warning: ";
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with(kWarning)) {
      core::warn("{}", line.substr(kWarning.size()));
    } else {
      core::log("{}", line);
    }
  }
  reported_ += static_cast<std::int64_t>(begin);
}

void MetricsExport::warn_of_end(const core::ExitStatus& status) const {
  core::warn("export to trackers: the process ended: {}; {}; its log: {}", core::to_text(status),
             kConsequence, core::shown_path(log_.string()));
}

void MetricsExport::look() {
  if (!process_) return;
  pass_on();
  if (const std::optional<core::ExitStatus> status = process_->ended()) {
    pass_on();
    warn_of_end(*status);
    process_.reset();
  }
}

void MetricsExport::finish() {
  if (!process_) return;
  lifeline_.write.reset();
  const bool drained = ended_before(*process_, core::now() + kDrain);
  pass_on();
  if (!drained) {
    core::warn("export to trackers: the last records were not written within {} s and are lost",
               kDrain.count());
  } else if (const std::optional<core::ExitStatus> status = process_->ended(); !status->ok()) {
    warn_of_end(*status);
  }
  process_->end_group(core::now() + kKill);
  process_.reset();
}

}  // namespace scaletrain::launcher
