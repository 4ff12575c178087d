#include "launcher/jobs/resume_command.h"

#include <fmt/format.h>

#include "lib/core/shell_word.h"

namespace scaletrain::launcher {
namespace {

std::string endpoints_text(const Placement& placement) {
  std::string text;
  for (const Endpoint& endpoint : placement.endpoints) {
    text += (text.empty() ? "" : ",") + to_text(endpoint);
  }
  return text;
}

}  // namespace

std::string resume_command(const std::filesystem::path& run, const Placement& placement) {
  if (placement.task) {
    return fmt::format("srun --nodes={} --ntasks={} scaletrain worker --resume auto {}",
                       placement.task->nodes, placement.nnodes,
                       core::shell_word((run / "recipe.json").string()));
  }
  std::string words = "scaletrain resume " + core::shell_word(run.string());
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

}  // namespace scaletrain::launcher
