#include "lib/core/text/other_words.h"

#include <algorithm>
#include <array>

namespace scaletrain::core {
namespace {

struct OtherWord {
  std::string_view command, theirs, ours;
};

constexpr std::array kOtherWords{
    OtherWord{"scaletrain", "train", "launch"},
    OtherWord{"scaletrain", "run", "launch"},
    OtherWord{"scaletrain", "start", "launch"},
    OtherWord{"scaletrain", "fit", "launch"},
    OtherWord{"scaletrain", "test", "eval"},
    OtherWord{"scaletrain", "evaluate", "eval"},
    OtherWord{"scaletrain", "validate", "recipe check, or eval"},
    OtherWord{"scaletrain", "check", "recipe check, data check or checkpoint verify"},
    OtherWord{"scaletrain", "infer", "predict"},
    OtherWord{"scaletrain", "export", "checkpoint export"},
    OtherWord{"scaletrain", "convert", "checkpoint export, or checkpoint import"},
    OtherWord{"scaletrain", "import", "checkpoint import, or data import"},
    OtherWord{"scaletrain", "config", "recipe"},
    OtherWord{"scaletrain", "env", "doctor"},
    OtherWord{"scaletrain", "submit", "slurm RECIPE --submit"},
    OtherWord{"scaletrain", "sbatch", "slurm RECIPE --submit"},
    OtherWord{"scaletrain", "cancel", "slurm cancel"},
    OtherWord{"scaletrain", "logs", "slurm logs, or the files in RUN/logs"},
    OtherWord{"scaletrain", "version", "--version"},
    OtherWord{"scaletrain recipe", "validate", "check"},
    OtherWord{"scaletrain recipe", "print", "show"},
    OtherWord{"scaletrain checkpoint", "show", "inspect"},
    OtherWord{"scaletrain checkpoint", "info", "inspect"},
    OtherWord{"scaletrain checkpoint", "list", "ls"},
    OtherWord{"scaletrain checkpoint", "check", "verify"},
    OtherWord{"scaletrain checkpoint", "convert", "export, or import"},
    OtherWord{"scaletrain data", "list", "ls"},
    OtherWord{"scaletrain data", "info", "stats"},
    OtherWord{"scaletrain data", "create", "pack"},
    OtherWord{"scaletrain data", "write", "pack"},
    OtherWord{"scaletrain data", "convert", "import, or pack"},
    OtherWord{"scaletrain data", "verify", "check"},
    OtherWord{"scaletrain data", "validate", "check"},
    OtherWord{"scaletrain data", "cat", "get"},
    OtherWord{"scaletrain data", "extract", "get"},
    OtherWord{"scaletrain data", "generate", "synth"},
    OtherWord{"scaletrain launch", "-n", "--nproc"},
    OtherWord{"scaletrain launch", "-np", "--nproc"},
    OtherWord{"scaletrain launch", "-g", "--nproc"},
    OtherWord{"scaletrain launch", "--np", "--nproc"},
    OtherWord{"scaletrain launch", "--gpus", "--nproc"},
    OtherWord{"scaletrain launch", "--ngpus", "--nproc"},
    OtherWord{"scaletrain launch", "--num-gpus", "--nproc"},
    OtherWord{"scaletrain launch", "--num_gpus", "--nproc"},
    OtherWord{"scaletrain launch", "--num-processes", "--nproc"},
    OtherWord{"scaletrain launch", "--num_processes", "--nproc"},
    OtherWord{"scaletrain launch", "--ntasks-per-node", "--nproc"},
    OtherWord{"scaletrain launch", "-N", "--nnodes"},
    OtherWord{"scaletrain launch", "--nodes", "--nnodes"},
    OtherWord{"scaletrain launch", "--num-machines", "--nnodes"},
    OtherWord{"scaletrain launch", "--num_machines", "--nnodes"},
    OtherWord{"scaletrain launch", "--machine-rank", "--node-rank"},
    OtherWord{"scaletrain launch", "--machine_rank", "--node-rank"},
    OtherWord{"scaletrain launch", "--devices", "--nproc"},
    OtherWord{"scaletrain launch", "--num-nodes", "--nnodes"},
    OtherWord{"scaletrain launch", "--num_nodes", "--nnodes"},
    OtherWord{"scaletrain launch", "--main-process-ip", "--master-addr"},
    OtherWord{"scaletrain launch", "--main_process_ip", "--master-addr"},
    OtherWord{"scaletrain launch", "--main-process-port", "--master-port"},
    OtherWord{"scaletrain launch", "--main_process_port", "--master-port"},
    OtherWord{"scaletrain launch", "--resume-from-checkpoint", "--resume"},
    OtherWord{"scaletrain launch", "--resume_from_checkpoint", "--resume"},
    OtherWord{"scaletrain launch", "--ckpt-path", "--resume"},
    OtherWord{"scaletrain launch", "--ckpt_path", "--resume"},
    OtherWord{"scaletrain launch", "--rdzv-timeout", "--rdzv-conf join_timeout=SECONDS"},
    OtherWord{"scaletrain launch", "--rdzv_timeout", "--rdzv-conf join_timeout=SECONDS"},
    OtherWord{"scaletrain launch", "--config", "RECIPE, without a flag"},
    OtherWord{"scaletrain launch", "--output-dir", "--set output=FOLDER"},
    OtherWord{"scaletrain launch", "--batch-size", "--set batch.per_device=N"},
    OtherWord{"scaletrain launch", "--batch_size", "--set batch.per_device=N"},
    OtherWord{"scaletrain launch", "--learning-rate", "--set optimizer.lr=VALUE"},
    OtherWord{"scaletrain launch", "--learning_rate", "--set optimizer.lr=VALUE"},
    OtherWord{"scaletrain data pack", "--out", "SRC OUT, without a flag"},
    OtherWord{"scaletrain data pack", "-o", "SRC OUT, without a flag"},
    OtherWord{"scaletrain data pack", "--output", "SRC OUT, without a flag"},
    OtherWord{"scaletrain data check", "--fix", "--repair"},
    OtherWord{"", "--force", "--overwrite"},
    OtherWord{"", "-f", "--overwrite"},
    OtherWord{"", "--output", "--out"},
    OtherWord{"", "-o", "--out"},
    OtherWord{"", "--workers", "--threads"},
    OtherWord{"", "--num-workers", "--threads"},
    OtherWord{"", "-j", "--threads"},
};

}  // namespace

std::string our_word(std::string_view command, std::string_view word) {
  const auto* const found =
      std::find_if(kOtherWords.begin(), kOtherWords.end(), [&](const OtherWord& other) {
        return other.theirs == word && (other.command.empty() || other.command == command);
      });
  return found == kOtherWords.end() ? "" : std::string(found->ours);
}

}  // namespace scaletrain::core
