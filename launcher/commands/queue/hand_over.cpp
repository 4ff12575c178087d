#include "launcher/commands/queue/hand_over.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "launcher/commands/slurm/job_record.h"
#include "launcher/jobs/checks/run_folder.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

int run_to_end(std::vector<std::string> arguments) {
  const core::Process process =
      core::Process::spawn({.arguments = std::move(arguments), .variables = {}});
  pollfd watch{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
  while (poll(&watch, 1, -1) < 0 && errno == EINTR) {
  }
  return process.ended().value_or(core::ExitStatus{.code = 1}).shell_code();
}

}  // namespace

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quote == 0 && (letter == ' ' || letter == '\t' || letter == '\n')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (letter == quote) {
      quote = 0;
    } else if (quote == 0 && (letter == '\'' || letter == '"')) {
      quote = letter;
    } else if (letter == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += letter;
    }
  }
  if (quote != 0) {
    throw core::UsageError("--slurm", "a quote is not closed",
                           "quote as in a shell: --slurm=\"--job-name 'my run'\"");
  }
  return words;
}

void ask_slurm(std::vector<QueuedJob>& jobs) {
  for (QueuedJob& job : jobs) {
    if (job.state != QueuedJob::State::kWaiting) continue;
    if (finished_run(job.output)) {
      job.state = QueuedJob::State::kDone;
    } else if (const std::string state = state_in_slurm(job.output);
               !state.empty() && state != "PENDING") {
      job.state = QueuedJob::State::kRunning;
    }
  }
}

int hand_to_slurm(const std::vector<QueuedJob>& jobs, const std::string& launcher,
                  std::vector<std::string> words) {
  const auto is_there = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!is_there("--print") && !is_there("--submit")) words.emplace_back("--submit");
  for (const QueuedJob& job : jobs) {
    if (job.state != QueuedJob::State::kWaiting) continue;
    if (const std::string state = state_in_slurm(job.output); !state.empty()) {
      core::log("job {} {}: is in Slurm's queue: {}", job.number, job.name, state);
      continue;
    }
    std::vector<std::string> arguments{launcher, "slurm", job.recipe};
    for (const std::string& set : job.set) arguments.insert(arguments.end(), {"--set", set});
    arguments.insert(arguments.end(), words.begin(), words.end());
    if (const int status = run_to_end(std::move(arguments)); status != 0) return status;
  }
  return 0;
}

}  // namespace scaletrain::launcher
