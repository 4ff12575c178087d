#include "lib/recipe/checks.h"

#include <fmt/format.h>

#include <set>

#include "lib/recipe/context.h"
#include "lib/recipe/expert.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"
#include "lib/recipe/tensor.h"

namespace scaletrain::recipe {
namespace {

// A model may learn any task that reads what its own does.
void check_task(const Recipe& recipe, const Node& tree, Problems& problems) {
  const std::string& learned = recipe.model.row().task;
  if (task_of(recipe).reads == find_task(learned)->reads) return;
  problems.add(written_at(tree, {"task"}), "/task",
               fmt::format("{} does not learn {}", recipe.model.name, recipe.task),
               fmt::format("use {}, or another model", learned));
}

// A language model reads tokens, every other model images.
void check_kind(const Recipe& recipe, const Node& tree, Problems& problems) {
  const bool has_tokens = !recipe.data.train.tokens.empty();
  if (reads_tokens(recipe.model) == has_tokens) return;
  if (has_tokens) {
    problems.add(written_at(tree, {"data", "train", "tokens"}), "/data/train/tokens",
                 fmt::format("{} reads images, not tokens", recipe.model.name),
                 "use shards or a folder of images, or a language model");
  } else {
    problems.add(written_at(tree, {"data", "train"}), "/data/train",
                 fmt::format("{} reads tokens, and these are images", recipe.model.name),
                 R"(name token files: "tokens": "train-{000000..000003}.bin", as )"
                 "scaletrain data tokenize writes them");
  }
}

void check_context(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!reads_tokens(recipe.model)) return;
  const std::int64_t positions = recipe.model.integer("positions");
  if (recipe.data.context > positions) {
    problems.add(written_at(tree, {"data", "context"}), "/data/context",
                 fmt::format("{} is more than \"positions\" of the model, which is {}",
                             recipe.data.context, positions),
                 "change one of them");
  }
  if (recipe.mix) {
    problems.add(written_at(tree, {"mix"}), "/mix", "mixes images, and these are tokens",
                 "leave it out");
  }
}

// In steps of which an epoch has more at first than later.
bool counts_epochs(const Schedule& schedule) {
  const auto is_in_epochs = [](const std::optional<Duration>& duration) {
    return duration && duration->unit == Duration::Unit::kEpochs;
  };
  static const std::set<std::string> decays{"cosine_restarts", "exponential", "multi_step", "step"};
  return schedule.by == "epoch" || is_in_epochs(schedule.warmup) ||
         is_in_epochs(schedule.cooldown) || decays.contains(schedule.decay.name);
}

void check_ramp_of_steps(const Recipe& recipe, const Node& tree, Problems& problems) {
  const bool is_of_steps = recipe.length.unit == Duration::Unit::kSteps;
  if (!recipe.batch.ramp || !is_of_steps || !counts_epochs(recipe.schedule)) return;
  problems.add(written_at(tree, {"batch", "ramp"}), "/batch/ramp",
               "the schedule counts epochs, which have more steps while the batch grows, and the "
               "training is so many steps",
               R"(give the training's length in "epochs", or the schedule in steps)");
}

// If "device" is not known before the ranks start, they report it.
void check_device(const Recipe& recipe, const Node& tree, Problems& problems) {
  const Precision& precision = recipe.precision;
  if (precision.name != "fp8" || recipe.device != "cpu" || precision.flag("simulate")) return;
  problems.add(written_at(tree, {"precision"}), "/precision",
               "fp8 needs a GPU, and \"device\" is cpu",
               R"(use bf16, or compute the same roundings slowly with "simulate": true)");
}

void check_automatic_batch(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!recipe.batch.is_automatic() || recipe.device != "cpu" || recipe.batch.memory_mb) return;
  problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device", kNoEndOnCpu,
               kEndOnCpu);
}

// A mistake at the root may be a section that is missing: then there is nothing to compare with.
bool has_optimizer(const Problems& problems) {
  return problems.none_at_root() && problems.none_under("/optimizer");
}

void check_exchanges(const Recipe& recipe, const Node& tree, Problems& problems) {
  check(recipe.compress,
        {.parallel = recipe.parallel,
         .precision = recipe.precision,
         .sam = recipe.sam,
         .sync = recipe.sync},
        tree, problems);
  if (!has_optimizer(problems)) return;
  check(recipe.sync,
        {.parallel = recipe.parallel,
         .precision = recipe.precision,
         .optimizer = recipe.optimizer,
         .sam = recipe.sam,
         .ema = recipe.ema,
         .swa = recipe.swa,
         .offload = recipe.offload,
         .writers = recipe.checkpoint.writers,
         .batch = recipe.batch,
         .schedule = recipe.schedule,
         .early_stopping = recipe.early_stopping,
         .order = recipe.data.order},
        tree, problems);
}

}  // namespace

const TaskRow& task_of(const Recipe& recipe) {
  return *find_task(recipe.task.empty() ? recipe.model.row().task : recipe.task);
}

void check_between_keys(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (problems.none_under("/batch")) check(recipe.batch, tree, problems);
  if (problems.none_under("/batch")) check_automatic_batch(recipe, tree, problems);
  if (problems.none_under("/log")) check(recipe.log, tree, problems);
  if (problems.none_under("/batch") && problems.none_under("/mix")) {
    check(recipe.mix, recipe.batch.per_device, tree, problems);
  }
  if (problems.none_under("/batch") && problems.none_under("/parallel")) {
    check(recipe.parallel, recipe.batch, tree, problems);
  }
  if (problems.none_under("/log") && problems.none_under("/parallel")) {
    check(recipe.log, recipe.parallel, tree, problems);
  }
  if (problems.none_under("/schedule")) check(recipe.schedule, tree, problems);
  if (problems.none_under("/precision")) check_device(recipe, tree, problems);
  if (has_optimizer(problems)) {
    check(recipe.optimizer, tree, problems);
    if (problems.none_under("/ema")) check(recipe.ema, recipe.optimizer, tree, problems);
    if (problems.none_under("/precision")) {
      check(recipe.precision, recipe.optimizer, recipe.sam, tree, problems);
    }
    check(recipe.swa, recipe.ema.has_value(), recipe.optimizer, tree, problems);
  }
  if (problems.none_under("/parallel")) {
    check(recipe.parallel, recipe.checkpoint, tree, problems);
  }
  if (problems.none_under("/parallel") && problems.none_under("/precision")) {
    check(recipe.parallel, recipe.precision, tree, problems);
  }
  if (problems.none_under("/parallel") && problems.none_under("/offload")) {
    check(recipe.offload, recipe.parallel, recipe.sam, recipe.clip, tree, problems);
  }
  if (problems.none_under("/compress") && problems.none_under("/sync")) {
    check_exchanges(recipe, tree, problems);
  }
  // A mistake at the root may be a missing length, model or data.
  if (!problems.none_at_root()) return;
  if (problems.none_under("/batch") && problems.none_under("/schedule")) {
    check_ramp_of_steps(recipe, tree, problems);
  }
  if (problems.none_under("/mix")) check_off_epochs(recipe.mix, recipe.length, tree, problems);
  if (problems.none_under("/data")) {
    check(recipe.data, tree, problems);
    if (problems.none_under("/batch")) {
      const Batch& batch = recipe.batch;
      check_epoch(recipe.data, batch.global.value_or(batch.per_device), tree, problems);
    }
  }
  if (problems.none_under("/model")) {
    check_task(recipe, tree, problems);
    check_channels(recipe.model, tree, problems);
    if (problems.none_under("/loss")) {
      check(recipe.loss, task_of(recipe), recipe.model.num_classes, tree, problems);
    }
    check(recipe.swa, recipe.model, tree, problems);
    if (problems.none_under("/recompute")) check(recipe.recompute, recipe.model, tree, problems);
    if (problems.none_under("/recompute") && problems.none_under("/parallel")) {
      check(recipe.parallel, recipe.model, recipe.recompute, tree, problems);
    }
    if (problems.none_under("/precision")) check(recipe.precision, recipe.model, tree, problems);
    if (problems.none_under("/checkpoint")) {
      check_best(recipe.checkpoint.best, task_of(recipe), recipe.ema.has_value(), tree, problems);
    }
    if (recipe.schedule.plateau && problems.none_under("/schedule")) {
      check(*recipe.schedule.plateau, task_of(recipe), tree, problems);
    }
    if (problems.none_under("/early_stopping")) {
      check(recipe.early_stopping, task_of(recipe), tree, problems);
    }
  }
  if (problems.none_under("/model") && problems.none_under("/data") &&
      problems.none_under("/parallel") && problems.none_under("/optimizer") &&
      problems.none_under("/clip")) {
    check_tensor(recipe, tree, problems);
    check_shared_sequences(recipe, tree, problems);
  }
  if (problems.none_under("/model") && problems.none_under("/parallel") &&
      problems.none_under("/optimizer") && problems.none_under("/sync") &&
      problems.none_under("/compress")) {
    check_experts(recipe, tree, problems);
  }
  if (problems.none_under("/model") && problems.none_under("/data")) {
    check_kind(recipe, tree, problems);
    check_context(recipe, tree, problems);
    check_image_size(recipe.model, {.size = recipe.data.image_size}, tree, problems);
    check(recipe.data.resize_ramp, recipe.model, tree, problems);
    if (problems.none_under("/batch")) {
      const std::optional<ResizeRamp>& ramp = recipe.data.resize_ramp;
      check_batch_norm(recipe.model, recipe.batch.per_device,
                       ramp ? ramp->from : recipe.data.image_size, tree, problems);
    }
  }
}

}  // namespace scaletrain::recipe
