// Headings and examples of all commands of `scaletrain`, for --help, the man pages and the
// reference.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <vector>

#include "launcher/commands/commands.h"
#include "lib/core/text/help_text.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kTrain = "Train";
constexpr const char* kCluster = "Run on a cluster";
constexpr const char* kPrepare = "Check before a run";
constexpr const char* kUse = "Look into runs and use checkpoints";
constexpr const char* kShell = "Help and shell";

const std::vector<core::CommandText>& texts() {
  static const std::vector<core::CommandText> result{
      {"", nullptr,
       "# Train a small model on drawn pictures in seconds, without any file.\n"
       "scaletrain demo\n"
       "# Train a model on all GPUs of this machine.\n"
       "scaletrain launch --nproc gpu recipe.json\n"
       "# Prepare, check and inspect training data: list the commands of scaletrain data.\n"
       "scaletrain data --help\n"
       "# Run the program scaletrain-NAME on PATH as a command.\n"
       "scaletrain NAME"},
      {"launch", kTrain,
       "# Train on two GPUs.\n"
       "scaletrain launch --nproc 2 recipe.json\n"
       "# Change keys of the recipe.\n"
       "scaletrain launch --set optimizer.lr=0.01 --set epochs=3 recipe.json\n"
       "# Continue from the newest checkpoint if there is one.\n"
       "scaletrain launch --nproc gpu --resume auto recipe.json\n"
       "# Check everything and print the outline of the run; nothing is started or written.\n"
       "scaletrain launch --nproc 8 --nnodes 8 --dry-run recipe.json\n"
       "# Test that the model learns 16 samples by heart.\n"
       "scaletrain launch --overfit 16 recipe.json\n"
       "# Start a PyTorch script as torchrun does.\n"
       "scaletrain launch --nproc gpu train.py --epochs 3\n"
       "# Start any program.\n"
       "scaletrain launch --nproc 2 -- ./program --flag"},
      {"demo", kTrain,
       "scaletrain demo\n"
       "# Train a ResNet-18 for some minutes.\n"
       "scaletrain demo --minutes 5 --output longer"},
      {"lr-find", kPrepare,
       "scaletrain lr-find recipe.json\n"
       "# Test on all GPUs and in another range, and write the curve as SVG.\n"
       "scaletrain lr-find recipe.json --nproc gpu --from 1e-5 --to 10 -o lr.svg"},
      {"prove", kPrepare,
       "scaletrain prove recipe.json\n"
       "# Run some of the proofs, on two ranks.\n"
       "scaletrain prove recipe.json --only same,killed,loader --nproc 2"},
      {"resume", kTrain,
       "# Continue from the newest complete checkpoint, on another number of ranks.\n"
       "scaletrain resume runs/digits --nproc 4\n"
       "# Train for longer than the recipe said.\n"
       "scaletrain resume runs/digits --set epochs=20 --allow epochs"},
      {"slurm", kCluster,
       "# Print the batch script.\n"
       "scaletrain slurm recipe.json --nodes 2 --gpus-per-node 8 --time 24:00:00\n"
       "# Submit three runs with different seeds.\n"
       "scaletrain slurm recipe.json --array 0-2 --set seed=%a --set output=runs/%a --submit"},
      {"slurm status", nullptr, "scaletrain slurm status runs/digits"},
      {"slurm cancel", nullptr, "scaletrain slurm cancel runs/digits"},
      {"slurm logs", nullptr, "scaletrain slurm logs runs/digits --lines 100 --follow"},
      {"k8s", kCluster,
       "scaletrain k8s recipe.json --image registry.example/scaletrain:1 --nodes 2 "
       "--gpus-per-node 8 --volume runs:/runs"},
      {"worker", kCluster,
       "# In a batch script: srun starts one task for each rank.\n"
       "srun scaletrain worker recipe.json --resume auto"},
      {"recipe", kPrepare,
       "scaletrain recipe new --data photos\n"
       "scaletrain recipe check recipe.json"},
      {"recipe new", nullptr,
       "# Image folder with one sub-folder for each class.\n"
       "scaletrain recipe new --data photos\n"
       "# Tar shards, another model and another file name.\n"
       "scaletrain recipe new --data 'shards/train-{000000..000003}.tar' --model vit_tiny -o "
       "vit.json"},
      {"recipe check", nullptr,
       "scaletrain recipe check recipe.json --nproc 8\n"
       "# Build the model in a worker too.\n"
       "scaletrain recipe check recipe.json --worker"},
      {"recipe lint", nullptr,
       "scaletrain recipe lint recipe.json --nproc 8\n"
       "# In a script: exit with 1 if there is a finding.\n"
       "scaletrain recipe lint recipe.json --strict"},
      {"recipe show", nullptr, "scaletrain recipe show recipe.json --set optimizer.name=lamb"},
      {"recipe schema", nullptr, "scaletrain recipe schema > recipe.schema.json"},
      {"recipe reference", nullptr, "scaletrain recipe reference | less"},
      {"recipe models", nullptr, "scaletrain recipe models | less"},
      {"checkpoint", kUse, "scaletrain checkpoint ls runs/digits"},
      {"checkpoint inspect", nullptr, "scaletrain checkpoint inspect runs/digits"},
      {"checkpoint verify", nullptr, "scaletrain checkpoint verify runs/digits"},
      {"checkpoint diff", nullptr, "scaletrain checkpoint diff runs/digits runs/other"},
      {"checkpoint average", nullptr,
       "scaletrain checkpoint average runs/a runs/b --out averaged.safetensors"},
      {"checkpoint export", nullptr,
       "scaletrain checkpoint export runs/digits exported --to timm\n"
       "scaletrain checkpoint export runs/gpt exported --to huggingface --dtype bf16"},
      {"checkpoint import", nullptr,
       "scaletrain checkpoint import exported imported\n"
       "scaletrain checkpoint import resnet18.pth imported --model resnet18"},
      {"checkpoint ls", nullptr, "scaletrain checkpoint ls runs/digits --keep-last 3"},
      {"checkpoint prune", nullptr,
       "# Show what would be removed.\n"
       "scaletrain checkpoint prune runs/digits --keep-last 3 --dry-run"},
      {"checkpoint now", nullptr, "scaletrain checkpoint now runs/digits"},
      {"checkpoint reshard", nullptr,
       "scaletrain checkpoint reshard runs/sharded/checkpoints/latest --output whole"},
      {"doctor", kPrepare, "scaletrain doctor --output /scratch/runs"},
      {"queue", kTrain,
       "# Run two recipes side by side on two GPUs.\n"
       "scaletrain queue first.json second.json --devices 0,1\n"
       "# Continue a queue that was stopped.\n"
       "scaletrain queue --retry"},
      {"sweep", kTrain,
       "scaletrain sweep recipe.json 'optimizer.lr=[1e-4,3e-4]' 'seed=[0,1,2]' --nproc 1"},
      {"completion", kShell,
       "# Enable completion in this shell; put the line into ~/.bashrc to keep it.\n"
       "source <(scaletrain completion bash)\n"
       "scaletrain completion fish | source"},
      {"man", kShell,
       "# Show a page.\n"
       "scaletrain man checkpoint export\n"
       "# Write all pages.\n"
       "scaletrain man --write ~/.local/share/man/man1"},
      {"explain", kPrepare, "scaletrain explain launch --nproc 8 recipe.json"},
      {"explain launch", nullptr,
       "scaletrain explain launch --nproc 8 --nnodes 2 --set parallel.shard=8 recipe.json"},
      {"explain run", nullptr, "scaletrain explain run runs/digits"},
      {"explain slurm", nullptr,
       "scaletrain explain slurm --nodes 2 --gpus-per-node 8 recipe.json"},
      {"explain queue", nullptr, "scaletrain explain queue first.json second.json --jobs 2"},
      {"explain sweep", nullptr, "scaletrain explain sweep recipe.json 'optimizer.lr=[1e-4,3e-4]'"},
      {"generate", kUse,
       "scaletrain generate runs/gpt --prompt Once --max-tokens 100 --temperature 0.8"},
      {"eval", kUse,
       "scaletrain eval runs/digits --on test\n"
       "scaletrain eval runs/digits --data shards/test-000000.tar --html mistakes.html"},
      {"predict", kUse, "scaletrain predict runs/digits pictures --top 1 --csv"},
      {"bench", kPrepare,
       "scaletrain bench memory recipe.json\n"
       "scaletrain bench speed recipe.json --nproc gpu"},
      {"plan", kPrepare,
       "# Does it fit, how long does it take, what does it cost?\n"
       "scaletrain plan recipe.json --device h100 --nproc 8 --nodes 2 --price 2.5\n"
       "# Rank parallel layouts.\n"
       "scaletrain plan recipe.json --device h100 --nproc 8 --nodes 2 --search\n"
       "# Measure a few steps here instead of predicting them.\n"
       "scaletrain plan recipe.json --nproc 2 --probe\n"
       "# Score the prediction for a finished run.\n"
       "scaletrain plan --check runs/digits"},
      {"plan scores", nullptr, "scaletrain plan scores"},
      {"status", kUse, "scaletrain status runs/digits --watch"},
      {"watch", kUse, "scaletrain watch runs/digits"},
      {"profile", kUse,
       "# Trace the next five steps of a running job; print the files when they are there.\n"
       "scaletrain profile runs/digits --steps 5 --wait"},
      {"trace", kUse, "scaletrain trace top runs/digits"},
      {"trace merge", nullptr, "scaletrain trace merge runs/digits -o digits-trace.json"},
      {"trace top", nullptr,
       "scaletrain trace top runs/digits\n"
       "# List the three largest costs of each kind in two files.\n"
       "scaletrain trace top runs/digits/profile/rank-0.json "
       "runs/digits/profile/rank-1.json --most 3"},
      {"report", kUse, "scaletrain report runs/digits runs/other -o page.html"},
      {"compare", kUse, "scaletrain compare runs/digits runs/other"},
      {"reproduce", kUse,
       "# What differs from the surroundings of the run? Nothing is started.\n"
       "scaletrain reproduce runs/digits --check\n"
       "# Train it again and compare the bits.\n"
       "scaletrain reproduce runs/digits --output runs/again"},
      {"runs", kUse, "scaletrain runs runs"},
      {"models", kUse, "scaletrain models ls"},
      {"models add", nullptr, "scaletrain models add digits runs/digits --stage staging"},
      {"models ls", nullptr, "scaletrain models ls"},
      {"models show", nullptr, "scaletrain models show digits 2"},
      {"models promote", nullptr, "scaletrain models promote digits 2 --to production"},
      {"models rollback", nullptr, "scaletrain models rollback digits"},
      {"help", kShell,
       "scaletrain help checkpoint export\n"
       "# Write the reference of all commands.\n"
       "scaletrain help --markdown"},
  };
  return result;
}

}  // namespace

void set_launcher_texts(CLI::App& app) { core::set_command_texts(app, texts()); }

}  // namespace scaletrain::launcher
