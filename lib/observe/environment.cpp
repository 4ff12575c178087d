#include "lib/observe/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/secrets.h"

namespace scaletrain::observe {

namespace {

// Variables that change how a run computes or where it is placed; nothing else is kept.
constexpr std::array<std::string_view, 11> kVariablePrefixes{
    "ATEN_", "CUDA_", "GLOO_",       "GOMP_",  "KMP_",  "MKL_",
    "NCCL_", "OMP_",  "SCALETRAIN_", "SLURM_", "TORCH_"};

// Reads by a stream, since files of /proc have no size; absent files are left out of the record.
std::string file_or_nothing(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string cpu_name() {
  const std::string text = file_or_nothing("/proc/cpuinfo");
  const std::size_t row = text.find("model name");
  if (row == std::string::npos) return "";
  const std::size_t colon = text.find(": ", row);
  return colon == std::string::npos ? "" : first_line(text.substr(colon + 2));
}

std::string commit_or_nothing(const std::string& text) {
  const std::string line = first_line(text);
  const bool digits = std::all_of(line.begin(), line.end(),
                                  [](unsigned char digit) { return std::isxdigit(digit) != 0; });
  return digits && (line.size() == 40 || line.size() == 64) ? line : "";
}

// Returns the folder with HEAD: ".git" itself, or the folder that a worktree's or submodule's
// ".git" file names.
std::filesystem::path git_folder(const std::filesystem::path& dot_git) {
  if (std::error_code ignored; !std::filesystem::is_regular_file(dot_git, ignored)) return dot_git;
  constexpr std::string_view kGitDir = "gitdir: ";
  const std::string line = first_line(file_or_nothing(dot_git));
  if (line.compare(0, kGitDir.size(), kGitDir) != 0) return dot_git;
  return dot_git.parent_path() / line.substr(kGitDir.size());
}

std::string packed_commit(const std::filesystem::path& folder, const std::string& ref) {
  const std::string packed = "\n" + file_or_nothing(folder / "packed-refs");
  const std::size_t end = (packed + "\n").find(" " + ref + "\n");
  if (end == std::string::npos) return "";
  const std::size_t start = packed.rfind('\n', end) + 1;
  return commit_or_nothing(packed.substr(start, end - start));
}

std::string commit_of_head(const std::filesystem::path& folder) {
  constexpr std::string_view kRef = "ref: ";
  const std::string head = first_line(file_or_nothing(folder / "HEAD"));
  if (head.compare(0, kRef.size(), kRef) != 0) return commit_or_nothing(head);
  const std::string ref = head.substr(kRef.size());
  // Branches of a worktree live in the repository that it belongs to.
  const std::string common = first_line(file_or_nothing(folder / "commondir"));
  const std::filesystem::path shared = common.empty() ? folder : folder / common;
  const std::string commit = commit_or_nothing(file_or_nothing(shared / ref));
  return commit.empty() ? packed_commit(shared, ref) : commit;
}

nlohmann::ordered_json command_without_secrets(const std::vector<std::string>& command) {
  nlohmann::ordered_json shown = nlohmann::ordered_json::array();
  bool hide_next = false;  // the value of "--token VALUE"
  for (const std::string& argument : command) {
    shown.push_back(hide_next ? "***" : without_secrets(argument));
    hide_next = argument.compare(0, 2, "--") == 0 && argument.find('=') == std::string::npos &&
                is_secret(argument);
  }
  return shown;
}

nlohmann::ordered_json shown_variables() {
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = text.substr(0, equals);
    const bool is_shown = std::any_of(
        kVariablePrefixes.begin(), kVariablePrefixes.end(),
        [&name](std::string_view prefix) { return name.compare(0, prefix.size(), prefix) == 0; });
    if (is_shown && !is_secret(name)) variables[name] = without_secrets(text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

std::vector<std::string> command_line(pid_t pid) {
  const std::string bytes = file_or_nothing("/proc/" + std::to_string(pid) + "/cmdline");
  std::vector<std::string> arguments;
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', start), bytes.size());
    arguments.push_back(bytes.substr(start, end - start));
    start = end + 1;
  }
  return arguments;
}

std::string git_commit(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::path at = std::filesystem::absolute(folder, failed).lexically_normal();
  while (!failed && !at.empty()) {
    const std::filesystem::path dot_git = at / ".git";
    std::error_code ignored;
    if (std::filesystem::exists(dot_git, ignored)) return commit_of_head(git_folder(dot_git));
    if (at == at.root_path()) break;
    at = at.parent_path();
  }
  return "";
}

std::string environment_json(const EnvironmentFacts& facts) {
  utsname system{};
  uname(&system);
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);
  const std::string commit = git_commit(here);
  nlohmann::ordered_json json;
  json["time"] = core::unix_time();
  json["versions"] = facts.versions;
  json["devices"] = facts.devices;
  json["world_size"] = facts.world_size;
  json["command"] = command_without_secrets(facts.command);
  json["host"] = system.nodename;
  json["kernel"] = system.release;
  json["cpu"] = cpu_name();
  json["cores"] = std::thread::hardware_concurrency();
  json["memory_bytes"] = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  json["working_directory"] = here.string();
  json["git_commit"] = commit.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(commit);
  json["variables"] = shown_variables();
  return core::json_text(json, 2) + "\n";
}

}  // namespace scaletrain::observe
