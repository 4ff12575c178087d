#include "lib/recipe/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "lib/recipe/context.h"
#include "lib/recipe/expert.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"
#include "lib/recipe/tensor.h"

namespace scaletrain::recipe {
namespace {

// A model can be trained for any task with the same kind of input.
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

// True if the schedule counts epochs, which have more steps during a batch ramp-up.
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
               "the schedule is in epochs, which have more steps while the batch grows, and the "
               "length of training is in steps",
               R"(give the training's length in "epochs", or the schedule in steps)");
}

// A device that is not known before the ranks start is checked by the ranks.
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

// A mistake at the root may be a missing section, which cannot be compared with others.
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

// Replicas that differ between synchronizations cannot go back to one checkpoint at any step.
void check_anomaly(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!recipe.anomaly) return;
  if (recipe.sync.is_async()) {
    problems.add(written_at(tree, {"anomaly"}), "/anomaly",
                 "asynchronous replicas have no step consensus",
                 R"(leave it out, or use another "sync")");
  }
  if (recipe.anomaly->policy != "rollback" || !recipe.sync.is_rare()) return;
  problems.add(written_at(tree, {"anomaly", "policy"}), "/anomaly/policy",
               "rollback needs replicas that are equal after each step, and /sync lets them differ",
               R"(use another policy, or leave "sync" out)");
}

// As for a rollback: replicas of local SGD cannot go back to one checkpoint at any step.
void check_integrity(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!recipe.integrity || recipe.integrity->action != "restore" || !recipe.sync.is_rare()) return;
  problems.add(written_at(tree, {"integrity", "action"}), "/integrity/action",
               "restore needs replicas that are equal after each step, and /sync lets them differ",
               R"(use "stop", or leave "sync" out)");
}

// Input of a check, and the list that it adds mistakes to.
struct Subject {
  const Recipe& recipe;
  const Node& tree;
  Problems& problems;
};

// A check between keys. It runs only if the sections that it reads have no mistakes yet: a
// follow-up error would confuse.
struct Check {
  std::vector<std::string_view> sections;
  void (*run)(const Subject& subject);
};

// Checks that read the same sections; these are examined once, before the group's first check.
struct CheckGroup {
  std::vector<std::string_view> sections;
  std::vector<Check> checks;
};

// The recipe as a whole: a mistake there may be a missing length, model or data.
constexpr std::string_view kRoot;

const std::vector<CheckGroup>& check_groups() {
  static const std::vector<CheckGroup> groups{
      {{},
       {{{"/batch"}, [](const Subject& s) { check(s.recipe.batch, s.tree, s.problems); }},
        {{"/batch"}, [](const Subject& s) { check_automatic_batch(s.recipe, s.tree, s.problems); }},
        {{"/log"}, [](const Subject& s) { check(s.recipe.log, s.tree, s.problems); }},
        {{"/batch", "/mix"},
         [](const Subject& s) {
           check(s.recipe.mix, s.recipe.batch.per_device, s.tree, s.problems);
         }},
        {{"/batch", "/parallel"},
         [](const Subject& s) { check(s.recipe.parallel, s.recipe.batch, s.tree, s.problems); }},
        {{"/schedule"}, [](const Subject& s) { check(s.recipe.schedule, s.tree, s.problems); }},
        {{"/precision"}, [](const Subject& s) { check_device(s.recipe, s.tree, s.problems); }}}},
      {{kRoot, "/optimizer"},
       {{{}, [](const Subject& s) { check(s.recipe.optimizer, s.tree, s.problems); }},
        {{"/ema"},
         [](const Subject& s) { check(s.recipe.ema, s.recipe.optimizer, s.tree, s.problems); }},
        {{"/precision"},
         [](const Subject& s) {
           check(s.recipe.precision, s.recipe.optimizer, s.recipe.sam, s.tree, s.problems);
         }},
        {{},
         [](const Subject& s) {
           check(s.recipe.swa, s.recipe.ema.has_value(), s.recipe.optimizer, s.tree, s.problems);
         }}}},
      {{},
       {{{"/parallel"},
         [](const Subject& s) {
           check(s.recipe.parallel, s.recipe.checkpoint, s.tree, s.problems);
         }},
        {{"/parallel", "/precision"},
         [](const Subject& s) {
           check(s.recipe.parallel, s.recipe.precision, s.tree, s.problems);
         }},
        {{"/parallel", "/offload"},
         [](const Subject& s) {
           check(s.recipe.offload, s.recipe.parallel, s.recipe.sam, s.recipe.clip, s.tree,
                 s.problems);
         }},
        {{"/anomaly", "/sync"},
         [](const Subject& s) { check_anomaly(s.recipe, s.tree, s.problems); }},
        {{"/integrity", "/sync"},
         [](const Subject& s) { check_integrity(s.recipe, s.tree, s.problems); }},
        {{"/compress", "/sync"},
         [](const Subject& s) { check_exchanges(s.recipe, s.tree, s.problems); }}}},
      {{kRoot},
       {{{"/batch", "/schedule"},
         [](const Subject& s) { check_ramp_of_steps(s.recipe, s.tree, s.problems); }},
        {{"/mix"},
         [](const Subject& s) {
           check_off_epochs(s.recipe.mix, s.recipe.length, s.tree, s.problems);
         }}}},
      {{kRoot, "/data"},
       {{{}, [](const Subject& s) { check(s.recipe.data, s.tree, s.problems); }},
        {{"/batch"},
         [](const Subject& s) {
           const Batch& batch = s.recipe.batch;
           check_epoch(s.recipe.data, batch.global.value_or(batch.per_device), s.tree, s.problems);
         }}}},
      {{kRoot, "/model"},
       {{{}, [](const Subject& s) { check_task(s.recipe, s.tree, s.problems); }},
        {{}, [](const Subject& s) { check_channels(s.recipe.model, s.tree, s.problems); }},
        {{"/loss"},
         [](const Subject& s) {
           check(s.recipe.loss, task_of(s.recipe), s.recipe.model.num_classes, s.tree, s.problems);
         }},
        {{}, [](const Subject& s) { check(s.recipe.swa, s.recipe.model, s.tree, s.problems); }},
        {{"/recompute"},
         [](const Subject& s) { check(s.recipe.recompute, s.recipe.model, s.tree, s.problems); }},
        {{"/recompute", "/parallel"},
         [](const Subject& s) {
           check(s.recipe.parallel, s.recipe.model, s.recipe.recompute, s.tree, s.problems);
         }},
        {{"/precision"},
         [](const Subject& s) { check(s.recipe.precision, s.recipe.model, s.tree, s.problems); }},
        {{"/checkpoint"},
         [](const Subject& s) {
           check_best(s.recipe.checkpoint.best, task_of(s.recipe), s.recipe.ema.has_value(), s.tree,
                      s.problems);
         }},
        {{"/schedule"},
         [](const Subject& s) {
           const std::optional<Plateau>& plateau = s.recipe.schedule.plateau;
           if (plateau) check(*plateau, task_of(s.recipe), s.tree, s.problems);
         }},
        {{"/early_stopping"},
         [](const Subject& s) {
           check(s.recipe.early_stopping, task_of(s.recipe), s.tree, s.problems);
         }}}},
      {{kRoot, "/model", "/data", "/parallel", "/optimizer", "/clip"},
       {{{}, [](const Subject& s) { check_tensor(s.recipe, s.tree, s.problems); }},
        {{}, [](const Subject& s) { check_shared_sequences(s.recipe, s.tree, s.problems); }}}},
      {{kRoot, "/model", "/parallel", "/optimizer", "/sync", "/compress"},
       {{{}, [](const Subject& s) { check_experts(s.recipe, s.tree, s.problems); }}}},
      {{kRoot, "/model", "/data"},
       {{{}, [](const Subject& s) { check_kind(s.recipe, s.tree, s.problems); }},
        {{}, [](const Subject& s) { check_context(s.recipe, s.tree, s.problems); }},
        {{},
         [](const Subject& s) {
           check_image_size(s.recipe.model, {.size = s.recipe.data.image_size}, s.tree, s.problems);
         }},
        {{},
         [](const Subject& s) {
           check(s.recipe.data.resize_ramp, s.recipe.model, s.tree, s.problems);
         }},
        {{"/batch"}, [](const Subject& s) {
           const std::optional<ResizeRamp>& ramp = s.recipe.data.resize_ramp;
           check_batch_norm(s.recipe.model, s.recipe.batch.per_device,
                            ramp ? ramp->from : s.recipe.data.image_size, s.tree, s.problems);
         }}}}};
  return groups;
}

bool are_right(const std::vector<std::string_view>& sections, const Problems& problems) {
  return std::ranges::all_of(sections, [&](std::string_view section) {
    return section == kRoot ? problems.none_at_root() : problems.none_under(section);
  });
}

}  // namespace

const TaskRow& task_of(const Recipe& recipe) {
  return *find_task(recipe.task.empty() ? recipe.model.row().task : recipe.task);
}

void check_between_keys(const Recipe& recipe, const Node& tree, Problems& problems) {
  const Subject subject{.recipe = recipe, .tree = tree, .problems = problems};
  for (const CheckGroup& group : check_groups()) {
    if (!are_right(group.sections, problems)) continue;
    for (const Check& check : group.checks) {
      if (are_right(check.sections, problems)) check.run(subject);
    }
  }
}

}  // namespace scaletrain::recipe
