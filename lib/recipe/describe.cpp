#include "lib/recipe/describe.h"

#include <utility>

#include "lib/recipe/catalog/component.h"
#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/catalog/task.h"
#include "lib/recipe/tensor.h"

namespace scaletrain::recipe {
namespace {

using Unit = Duration::Unit;

TypePtr every(Duration& value, const std::string& help) {
  auto keys = std::make_unique<Object>();
  keys->add("every", duration(value, any_unit()), help);
  return keys;
}

NamedValues task_names() {
  NamedValues names;
  for (const TaskRow& task : tasks()) names.emplace_back(task.name, task.help);
  return names;
}

}  // namespace

Recipe blank_recipe(CatalogPtr catalog) {
  Recipe recipe;
  recipe.model.catalog = std::move(catalog);
  choose(recipe.precision, *precisions().find("fp32"));
  choose(recipe.loss, *losses().find("cross_entropy"));
  choose(recipe.schedule.decay, *schedules().find("constant"));
  return recipe;
}

std::unique_ptr<Object> describe(Recipe& recipe) {
  auto keys = std::make_unique<Object>();
  keys->add("$schema", ignored_text("an address"),
            "Address or path of the JSON Schema with which an editor completes and checks this "
            "file, for example `recipe.schema.json`. Training ignores it.")
      .add("version", fixed_integer(1), "Version of the recipe format. Default: 1, the only one.")
      .add("extends", ignored_text("a path relative to this file"),
           "Base recipe, a path relative to this file. This file is merged over it as a JSON Merge "
           "Patch (RFC 7396): null removes a key. Setting one of several alternatives removes the "
           "others, for example `steps` removes the base's `epochs`.")
      .add("name", run_name(recipe.name),
           "Run name. Default: the file's name without its extension. It names the default run "
           "folder, `runs/NAME`.")
      .add("description", texts(recipe.description, "a text"),
           "Comment for readers, a text or a list of lines. `recipe show` prints it; training "
           "ignores it.")
      .add("seed", integer(recipe.seed, from(0).to(9007199254740991.0)),
           "Random seed of initialization, data order, augmentation and dropout. Default: 0.")
      .add("task", choice(recipe.task, task_names()),
           "Training task, which decides targets, metrics and possible losses. Default: the task "
           "of the model. For example multi_label_classification.")
      .require("model", describe(recipe.model),
               "Model architecture, with its initial weights and frozen parameters.")
      .require("data", describe(recipe.data),
               "Training, validation and test data, and options of the data loader.")
      .add(
          "batch", describe(recipe.batch),
          "Batch size and gradient accumulation. Default: 32 samples per device, no accumulation.");
  add_units(*keys, recipe.length, {Unit::kEpochs, Unit::kSteps}, false, "Training length");
  keys->add("precision", describe(recipe.precision),
            "Compute dtype and mixed precision. Default: fp32. For example \"bf16\".")
      .require("optimizer", describe(recipe.optimizer),
               "Optimizer, with learning rate and weight decay.")
      .add("schedule", describe(recipe.schedule),
           "Learning rate schedule: warmup, decay, plateau. Default: constant, without warmup.")
      .add("loss", describe(recipe.loss), "Loss function. Default: cross_entropy.")
      .add("mix", describe(recipe.mix),
           "Mixup and CutMix of training images and their targets. Default: off.")
      .add("clip", describe(recipe.clip),
           "Gradient clipping. Default: off. For example {\"norm\": 1.0}.")
      .add("anomaly", describe(recipe.anomaly),
           "Handling of steps whose loss or gradients are not finite or spike. Default: off; only "
           "steps that are not finite are skipped, and 10 in a row end the run.")
      .add("integrity", describe(recipe.integrity),
           "Silent data corruption: compares digests of parameters and optimizer state between "
           "data-parallel replicas. Default: off.")
      .add("sam", describe(recipe.sam),
           "Sharpness-aware minimization (SAM): two forward and backward passes in each step. "
           "Default: off.")
      .add("ema", describe(recipe.ema),
           "Exponential moving average (EMA) of the weights. Each EMA is validated as well as the "
           "trained weights; the first one is tested and exported. Default: off.")
      .add("swa", describe(recipe.swa),
           "Stochastic weight averaging (SWA): the mean of the weights of late training, which is "
           "tested and exported. Default: off.")
      .add("recompute", describe(recipe.recompute),
           "Activation checkpointing: backward recomputes the activations of the chosen units "
           "(stem, blocks, head) to save memory. The last unit is never recomputed. Default: off.")
      .add("offload", describe(recipe.offload),
           "CPU or NVMe offload: keeps tensors in host memory until the GPU needs them. Saves GPU "
           "memory and costs transfers. Default: off.")
      .add("parallel", describe(recipe.parallel),
           "Parallel strategy: data parallelism, ZeRO/FSDP sharding, tensor, pipeline, context and "
           "expert parallelism. Default: data parallelism over all ranks.")
      .add("compress", describe(recipe.compress),
           "Compression of the gradients that data-parallel ranks communicate, or of DiLoCo's "
           "outer gradients. Default: off.")
      .add("sync", describe(recipe.sync),
           "Synchronization of data-parallel replicas: every step, local SGD, DiLoCo or "
           "asynchronous. Default: every step.")
      .add("validate",
           every(recipe.validate_every,
                 "Validation interval in steps, epochs or minutes. Default: 1 epoch."),
           "Interval of the validations on data.val and data.extra.")
      .add("early_stopping", describe(recipe.early_stopping),
           "Early stopping: ends training when validation no longer improves. Default: off.")
      .add("checkpoint", describe(recipe.checkpoint),
           "Checkpoints for resume: interval, writing, retention and copies. Default: every epoch, "
           "the last 3 and the best one are kept.")
      .add("storage", describe(recipe.storage),
           "Access to remote data and checkpoints: S3 endpoint, timeouts, retries.")
      .add("log", describe(recipe.log),
           "Logging of training metrics, and export to experiment trackers.")
      .add("profile", describe(recipe.profile),
           "Profiler trace of a few steps, as torch.profiler writes it, one file per rank: "
           "OUTPUT/profile/rank-0.json. Default: off.")
      .add(
          "cost", describe(recipe.cost),
          "Rates for the cost and the carbon emissions of the run in its closing summary. Default: "
          "none.")
      .add("threads", integer(recipe.threads, from(0).to(4096)),
           "Intra-op CPU threads of each rank, as torch.set_num_threads. Default: 0, the node's "
           "cores divided by its ranks.")
      .add("deterministic", flag(recipe.deterministic),
           "Uses deterministic GPU kernels, as torch.use_deterministic_algorithms, so that equal "
           "runs are equal bit for bit. Default: false. Slower; an operation without a "
           "deterministic kernel ends the run.")
      .add("device",
           choice(recipe.device, {{"auto", "`cuda` if the node has GPUs, otherwise `cpu`."},
                                  {"cpu", "CPU."},
                                  {"cuda", "One NVIDIA GPU for each rank."}}),
           "Device type of the ranks. Default: auto.")
      .add("dist", describe(recipe.dist), "Communication backend. GPU tensors always use NCCL.")
      .add("worker", path(recipe.worker),
           "Worker program to start, for example your own one with additional models. Default: "
           "scaletrain-worker beside the scaletrain program.")
      .add("output", path(recipe.output),
           "Run folder, for logs, metrics and checkpoints. Default: runs/NAME.")
      .reserve({"safety"});
  return keys;
}

}  // namespace scaletrain::recipe
