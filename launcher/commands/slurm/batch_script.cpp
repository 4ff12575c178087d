#include "launcher/commands/slurm/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kMostValueBytes = 1000;

// Characters that are special to neither a shell nor sbatch.
constexpr std::string_view kPlain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%,+=";

constexpr std::string_view kHead = R"(#!/bin/bash
# Runs a recipe on the nodes of one job: sbatch FILE RECIPE [flags of scaletrain launch]
)";

constexpr std::string_view kBody = R"(
# One launcher on each node. %a in the words above is the number of the array's task.
srun ${SLURM_CPUS_PER_TASK:+"--cpus-per-task=$SLURM_CPUS_PER_TASK"} \
  scaletrain launch --resume auto "${@//\%a/${SLURM_ARRAY_TASK_ID:-%a}}"
status=$?

# 75: stopped by a signal or a lost node; 74: by the storage. The next start goes on from the newest
# checkpoint. A run that stops a hundred times needs a person.
if [[ $status == 7[45] && ${SLURM_RESTART_COUNT:-0} -lt 100 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
)";

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == '\x7f'; }

// As one word for sbatch, which knows quotes and, between them too, the backslash.
std::string sbatch_quoted(const std::string& option, const std::string& value) {
  const auto refuse = [&](const std::string& found, const char* remedy) {
    throw core::UsageError("--" + option, found, remedy);
  };
  if (value.empty()) refuse("is empty", "give a value, or leave it out");
  if (value.size() > kMostValueBytes) {
    refuse(fmt::format("has {} bytes", value.size()),
           "give 1,000 bytes at most: sbatch cuts longer lines");
  }
  if (std::any_of(value.begin(), value.end(), is_control)) {
    refuse(fmt::format("\"{}\" holds a control character", core::printable(value)),
           "leave it out: it would end or change the line of the script");
  }
  if (value.find_first_not_of(kPlain) == std::string::npos) return value;
  std::string result = "'";
  for (const char byte : value) {
    if (byte == '\'' || byte == '\\') result += '\\';
    result += byte;
  }
  return result + "'";
}

}  // namespace

std::string batch_script(const std::vector<SbatchOption>& options) {
  std::string result(kHead);
  for (const auto& [name, value] : options) {
    result += "#SBATCH --" + name;
    if (value) result += "=" + sbatch_quoted(name, *value);
    result += '\n';
  }
  result += kBody;
  return result;
}

}  // namespace scaletrain::launcher
