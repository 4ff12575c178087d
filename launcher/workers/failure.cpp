#include "launcher/workers/failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <tuple>

#include "launcher/output/output_relay.h"
#include "launcher/place/placement.h"
#include "launcher/workers/error_file.h"
#include "launcher/workers/lost_peer.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

constexpr std::streamoff kTailBytes = 64 << 10;

// Returns the last lines of a file; empty if it cannot be read.
std::vector<std::string> last_lines_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff bytes = file.tellg();
  file.seekg(std::max<std::streamoff>(0, bytes - kTailBytes));
  std::string text(static_cast<std::size_t>(std::min(bytes, kTailBytes)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  LastLines last;
  last.add(text);
  return last.lines();
}

// True if the launcher ended the worker. A worker killed by something else may make its peers fail
// and be noticed after them, when all were sent SIGTERM: SIGKILL is the launcher's only if the
// launcher sent it.
bool ended_by_us(const WorkerEnd& end) {
  return (end.was_stopped && end.status.signal == SIGTERM) ||
         (end.was_killed && end.status.signal == SIGKILL);
}

// Returns the time of the failure. A time in whole seconds only shows that it was not later than
// the end of that second.
double failure_time(const WorkerEnd& end, const std::optional<ErrorFile>& file) {
  if (!file || file->time <= 0) return end.time;
  return file->whole_seconds ? std::min(end.time, file->time + 0.999)
                             : std::min(end.time, file->time);
}

struct FailedRank {
  const WorkerEnd* end;
  const WorkerPlan* plan;
  std::optional<ErrorFile> file;
  double time;
  bool followed;      // it ended because another had failed
  bool after_a_stop;  // possibly caused by that stop
};

// Returns the time at which the launcher saw the first failure that it had not caused; 0 if there
// was none.
double first_seen(const std::vector<WorkerEnd>& ends) {
  double result = 0;
  for (const WorkerEnd& end : ends) {
    if (end.status.ok() || end.was_tolerated || ended_by_us(end)) continue;
    if (result == 0 || end.time < result) result = end.time;
  }
  return result;
}

const WorkerPlan* plan_of(const WorkerEnd& end, const std::vector<WorkerPlan>& plans) {
  return &*std::find_if(plans.begin(), plans.end(),
                        [&](const WorkerPlan& plan) { return plan.rank == end.rank; });
}

Failure failure_of_hang(const Hang& hang, const std::vector<WorkerPlan>& plans) {
  Failure result{.host = host_name(),
                 .rank = hang.rank,
                 .local_rank = hang.local_rank,
                 .pid = hang.pid,
                 .status = {.code = static_cast<int>(core::ExitCode::kTemporary)},
                 .time = core::unix_time(),
                 .step = hang.step,
                 .followed = hang.followed,
                 .hang = hang.what,
                 .hang_lines = hang.lines};
  for (const WorkerPlan& plan : plans) {
    if (plan.rank != hang.rank) continue;
    result.log = plan.log;
    result.device = plan.device;
  }
  if (!result.log.empty()) result.last_lines = last_lines_of(result.log);
  return result;
}

// "node 1, host b".
std::string place_of(const Failure& failure) {
  return failure.node < 0 ? fmt::format("host {}", failure.host)
                          : fmt::format("node {}, host {}", failure.node, failure.host);
}

// "killed by SIGKILL (host a, local rank 2, pid 17, step 40)".
std::string end_of(const Failure& failure) {
  return fmt::format("{} ({}, local rank {}, pid {}{}{})", core::to_text(failure.status),
                     place_of(failure), failure.local_rank, failure.pid,
                     failure.device.empty() ? "" : ", " + failure.device,
                     failure.step >= 0 ? fmt::format(", step {}", failure.step) : "");
}

// First line of the report: the failure and the worker.
std::string headline(const Failure& failure) {
  if (!failure.hang.empty()) {
    return fmt::format("{} (local rank {}, pid {})", failure.hang, failure.local_rank, failure.pid);
  }
  return fmt::format("rank {} failed first: {}", failure.rank, end_of(failure));
}

std::string hint(const Failure& failure) {
  if (failure.status.signal != SIGKILL) return "";
  return "\n  nobody here sent that signal; the kernel does when memory runs out: see dmesg";
}

std::string render_node(const Failure& failure) {
  std::string text = fmt::format("{} {}: {}", place_of(failure),
                                 failure.followed ? "was lost" : "failed first", failure.cause);
  if (!failure.others.empty()) text += fmt::format("\n  also: {}", fmt::join(failure.others, ", "));
  return text;
}

}  // namespace

std::optional<Failure> first_failure(const GroupEnd& end, const std::vector<WorkerPlan>& plans) {
  if (end.hang) return failure_of_hang(*end.hang, plans);
  std::vector<FailedRank> failed;
  const double seen = first_seen(end.workers);
  for (const WorkerEnd& worker : end.workers) {
    if (worker.status.ok() || worker.was_tolerated) continue;
    const WorkerPlan* const plan = plan_of(worker, plans);
    std::optional<ErrorFile> file;
    if (plan->verdict_fd >= 0) file = read_verdict(plan->verdict_fd);
    if (!file && !plan->error_file.empty()) file = read_error_file(plan->error_file);
    const double time = failure_time(worker, file);
    // One that was slow to end after it had reported its failure is no follower.
    const bool reported_before = file && file->time > 0 && time < seen;
    const bool lost_peer = (plan->reports_lost_peer &&
                            worker.status.code == static_cast<int>(core::ExitCode::kTemporary)) ||
                           (file && reports_lost_peer(file->message));
    failed.push_back({.end = &worker,
                      .plan = plan,
                      .file = std::move(file),
                      .time = time,
                      .followed = lost_peer || (ended_by_us(worker) && !reported_before),
                      .after_a_stop = worker.was_stopped && !reported_before});
  }
  if (failed.empty()) return std::nullopt;
  std::stable_sort(failed.begin(), failed.end(), [](const FailedRank& a, const FailedRank& b) {
    return std::make_tuple(a.followed, a.after_a_stop, a.time) <
           std::make_tuple(b.followed, b.after_a_stop, b.time);
  });
  const FailedRank& first = failed.front();
  Failure result{.host = host_name(),
                 .device = first.plan->device,
                 .rank = first.end->rank,
                 .local_rank = first.end->local_rank,
                 .pid = first.end->pid,
                 .status = first.end->status,
                 .time = first.time,
                 .log = first.plan->log,
                 .last_lines = first.end->last_lines,
                 .followed = first.followed};
  // The status with which it would have ended, given the time.
  if (!first.followed && ended_by_us(*first.end)) result.status = {.code = 1};
  if (first.file) {
    result.cause = first.file->message;
    result.step = first.file->step;
    result.error_file = first.plan->error_file;
  }
  if (result.last_lines.empty() && !result.log.empty()) {
    result.last_lines = last_lines_of(result.log);
  }
  for (std::size_t i = 1; i < failed.size(); ++i) {
    if (ended_by_us(*failed[i].end)) continue;
    result.others.push_back(
        fmt::format("rank {}: {}", failed[i].end->rank, core::to_text(failed[i].end->status)));
  }
  return result;
}

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.push_back(text.substr(begin));
  return lines;
}

// Returns the last lines of the log without the cause, which a worker logs too, after its prefix.
std::vector<std::string> lines_beside_cause(const Failure& failure) {
  std::vector<std::string> lines = failure.last_lines;
  if (failure.cause.empty()) return lines;
  const std::vector<std::string> cause = lines_of(failure.cause);
  const auto found =
      std::search(lines.begin(), lines.end(), cause.begin(), cause.end(),
                  [](const std::string& line, const std::string& said) {
                    return line == said || (line.starts_with('[') && line.ends_with("] " + said));
                  });
  if (found != lines.end()) lines.erase(found, found + std::ssize(cause));
  return lines;
}

// The report after the first line.
std::string details(const Failure& failure) {
  std::string text = hint(failure);
  for (const std::string& line : failure.hang_lines) text += "\n  " + line;
  if (!failure.cause.empty()) {
    text += "\n  cause: ";
    for (const char letter : failure.cause) {
      text += letter;
      if (letter == '\n') text += "    ";
    }
  }
  if (const std::vector<std::string> lines = lines_beside_cause(failure); !lines.empty()) {
    text += "\n  the last lines of its standard error:";
    for (const std::string& line : lines) text += "\n    | " + line;
  }
  if (!failure.others.empty()) {
    text += fmt::format("\n  after it: {}", fmt::join(failure.others, ", "));
  }
  if (!failure.log.empty()) text += "\n  its log: " + failure.log;
  return text;
}

}  // namespace

std::string render(const Failure& failure) {
  if (failure.rank < 0) return render_node(failure);
  return headline(failure) + details(failure);
}

std::string render_lost(const Failure& failure, const std::string& with_it) {
  if (failure.rank < 0) {
    return fmt::format("{} is lost{}, the others go on: {}", place_of(failure), with_it,
                       failure.cause);
  }
  const std::string why = failure.hang.empty() ? end_of(failure) : "hangs: " + failure.hang;
  return fmt::format("rank {} is lost{}, the others go on: {}{}", failure.rank, with_it, why,
                     details(failure));
}

std::string short_text(const Failure& failure) {
  if (failure.rank < 0) return fmt::format("node {} (lost)", failure.node);
  return fmt::format("rank {} ({}{})", failure.rank,
                     failure.hang.empty() ? core::to_text(failure.status) : "hung",
                     failure.step >= 0 ? fmt::format(", step {}", failure.step) : "");
}

}  // namespace scaletrain::launcher
