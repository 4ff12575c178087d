#include "launcher/commands/slurm/job_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "launcher/commands/slurm/tool.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

constexpr std::int64_t kMaxRecordBytes = 1 << 16;

// States of jobs that do not come back; all others hold the run.
constexpr std::array<std::string_view, 10> kEnded{
    "BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE", "FAILED",
    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "REVOKED",  "TIMEOUT"};

std::filesystem::path record_file(const std::filesystem::path& run) { return run / "slurm.json"; }

[[noreturn]] void refuse_pattern(const std::string& found) {
  throw core::UsageError("--output", found, "use %j, or %A and %a for an array, %x and %%");
}

}  // namespace

void write_job_record(const std::filesystem::path& run, const JobRecord& record) {
  core::system_disk().make_folders(run);
  const nlohmann::json json{{"job", record.job}, {"log", record.log}};
  core::write_durably(core::system_disk(), record_file(run), core::json_text(json, 1) + "\n");
}

JobRecord read_job_record(const std::filesystem::path& run) {
  const std::filesystem::path file = record_file(run);
  constexpr const char* kRemedy = "submit the run: scaletrain slurm RECIPE --submit";
  if (!std::filesystem::exists(file)) {
    throw core::UsageError(file.string(), "does not exist", kRemedy);
  }
  const nlohmann::json json = nlohmann::json::parse(
      core::read_file(file, kMaxRecordBytes, core::ExitCode::kUsage), nullptr, false);
  JobRecord record;
  if (json.is_object() && json.contains("job") && json["job"].is_string()) {
    record.job = json["job"].get<std::string>();
  }
  if (json.is_object() && json.contains("log") && json["log"].is_string()) {
    record.log = json["log"].get<std::string>();
  }
  // It becomes an argument of Slurm's programs.
  if (record.job.empty() || record.job.find_first_not_of("0123456789_") != std::string::npos) {
    throw core::UsageError(file.string(), "has no job number", kRemedy);
  }
  return record;
}

std::string state_in_slurm(const std::filesystem::path& run) {
  if (!std::filesystem::exists(record_file(run)) || !core::find_program("squeue")) return "";
  const Captured end = run_tool({"squeue", "--noheader", "--format=%T",
                                 "--jobs=" + read_job_record(run).job, "--states=all"});
  if (!end.ok()) {
    // The only error that concerns the job: Slurm has forgotten it.
    if (end.error.find("Invalid job id") != std::string::npos) return "";
    throw core::UsageError("squeue", end.trouble(),
                           "the state of the run's job is unknown: try again");
  }
  const std::string state = end.output.substr(0, end.output.find('\n'));
  return std::find(kEnded.begin(), kEnded.end(), state) == kEnded.end() ? state : "";
}

std::string log_path(const std::string& pattern, const std::string& job, const std::string& name) {
  const std::size_t line = job.find('_');
  const bool is_array = line != std::string::npos;
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      result += pattern[i];
      continue;
    }
    const char letter = ++i < pattern.size() ? pattern[i] : ' ';
    if (letter == '%') {
      result += '%';
    } else if (letter == 'x') {
      result += name;
    } else if (letter == 'A' || (letter == 'j' && !is_array)) {
      result += job.substr(0, line);
    } else if (letter == 'a' && is_array) {
      result += job.substr(line + 1);
    } else {
      refuse_pattern(fmt::format("\"%{}\" cannot be found again{}",
                                 core::printable(std::string(1, letter)),
                                 is_array ? " in an array" : ""));
    }
  }
  return std::filesystem::absolute(result).lexically_normal();
}

}  // namespace scaletrain::launcher
