#include "launcher/jobs/resume_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "lib/core/text/shell_word.h"

namespace scaletrain::launcher {
namespace {

std::string endpoints_text(const Placement& placement) {
  std::string text;
  for (const Endpoint& endpoint : placement.endpoints) {
    text += (text.empty() ? "" : ",") + to_text(endpoint);
  }
  return text;
}

std::string task_command(const std::string& words, const Placement& placement) {
  return fmt::format("srun --nodes={} --ntasks={} scaletrain worker {}", placement.task->nodes,
                     placement.nnodes, words);
}

// `words`, "scaletrain resume RUN", with the numbers of nodes and ranks.
std::string placed_command(std::string words, const Placement& placement) {
  if (placement.by_srun) {
    return fmt::format("srun --nodes={} --ntasks-per-node=1 {} --nproc {}", placement.nnodes, words,
                       placement.nproc);
  }
  if (placement.nnodes == 1) {
    return placement.nproc == 1 ? words : fmt::format("{} --nproc {}", words, placement.nproc);
  }
  words += fmt::format(" --nnodes {} --nproc {}", placement.nnodes_text(), placement.nproc);
  if (placement.fixed_ranks) {
    return fmt::format("{} --node-rank {} --master-addr {} --master-port {}", words,
                       placement.node_rank, core::shell_word(placement.master_addr),
                       placement.master_port);
  }
  words += " --rdzv-backend c10d --rdzv-endpoint " + core::shell_word(endpoints_text(placement));
  if (!placement.local_addr.empty()) {
    words += " --local-addr " + core::shell_word(placement.local_addr);
  }
  return words;
}

}  // namespace

std::string resume_command(const std::filesystem::path& run, const Placement& placement) {
  if (placement.task) {
    const std::string recipe = core::shell_word((run / "recipe.json").string());
    return task_command("--resume auto " + recipe, placement);
  }
  return placed_command("scaletrain resume " + core::shell_word(run.string()), placement);
}

std::string launch_command(const LaunchOptions& options, const Placement& placement) {
  std::filesystem::path recipe = options.path;
  std::error_code unknown;
  if (std::filesystem::is_directory(recipe, unknown)) recipe /= "recipe.json";
  std::string words = core::shell_word(recipe.string());
  for (const std::string& one : options.set) words += " --set " + core::shell_word(one);
  if (placement.task) return task_command(words, placement);
  return placed_command("scaletrain launch " + words, placement);
}

}  // namespace scaletrain::launcher
