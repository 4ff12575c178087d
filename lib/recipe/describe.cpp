#include "lib/recipe/describe.h"

#include <utility>

#include "lib/recipe/component.h"
#include "lib/recipe/duration.h"
#include "lib/recipe/lists.h"
#include "lib/recipe/paths.h"
#include "lib/recipe/sections/tensor.h"
#include "lib/recipe/task.h"

namespace scaletrain::recipe {
namespace {

using Unit = Duration::Unit;

TypePtr every(Duration& value, const std::string& help) {
  auto keys = std::make_unique<Object>();
  keys->add("every", duration(value, any_unit()), help);
  return keys;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskRow& task : tasks()) names.push_back(task.name);
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
  keys->add("$schema", ignored_text("an address"), "for editors; not read")
      .add("version", fixed_integer(1), "version of the recipe format")
      .add("extends", ignored_text("a path relative to this file"),
           "a recipe that this one changes, merged as RFC 7396 says: null removes a key, one of "
           "several "
           "that exclude each other replaces the rest")
      .add("name", run_name(recipe.name), "name of the run; without it the file's name")
      .add("seed", integer(recipe.seed, from(0).to(9007199254740991.0)),
           "start of everything random")
      .add("task", choice(recipe.task, task_names()), "what is learned; without it the model's")
      .require("model", describe(recipe.model), "what is trained")
      .require("data", describe(recipe.data), "what it is trained on")
      .add("batch", describe(recipe.batch), "how many samples at a time");
  add_units(*keys, recipe.length, {Unit::kEpochs, Unit::kSteps}, false, "length of training");
  keys->add("precision", describe(recipe.precision), "in which numbers the model computes")
      .require("optimizer", describe(recipe.optimizer), "how the weights are changed")
      .add("schedule", describe(recipe.schedule), "how the learning rate changes")
      .add("loss", describe(recipe.loss), "what is made small")
      .add("mix", describe(recipe.mix), "mixes neighbours of a training batch, images and targets")
      .add("clip", describe(recipe.clip), "limits the gradients; without it they are not limited")
      .add("sam", describe(recipe.sam),
           "gradients from where the loss is highest nearby: two passes a step")
      .add("ema", describe(recipe.ema),
           "running means of the weights, which are validated beside them; the first is tested and "
           "exported")
      .add("swa", describe(recipe.swa),
           "the equal mean of the weights of late training, which is tested and exported")
      .add("recompute", describe(recipe.recompute),
           "saves memory: units whose activations backward computes again; the last one's never")
      .add("offload", describe(recipe.offload),
           "saves memory of a GPU: what lies in its host's as long as it is not needed")
      .add("parallel", describe(recipe.parallel),
           "how the ranks divide the model among themselves; without it each has all of it")
      .add(
          "compress", describe(recipe.compress),
          "gradients, or of diloco what the replicas have learned, that are made smaller for their "
          "exchange; without it they are exchanged as they are")
      .add("sync", describe(recipe.sync), "how often the replicas exchange")
      .add("validate",
           every(recipe.validate_every, "how often data.val and data.extra are looked at"),
           "looking at data.val and data.extra")
      .add("early_stopping", describe(recipe.early_stopping),
           "training ends where data.val gets no better")
      .add("checkpoint", describe(recipe.checkpoint), "what is kept for a resume")
      .add("storage", describe(recipe.storage), "how remote data is reached")
      .add("log", every(recipe.log_every, "how often a line of metrics is written"), "metrics")
      .add("profile", describe(recipe.profile),
           "a trace of some steps, of each rank: OUTPUT/profile/rank-0.json and so on")
      .add("threads", integer(recipe.threads, from(0).to(4096)),
           "computing threads of a rank; 0: cores over ranks of the node")
      .add("deterministic", flag(recipe.deterministic),
           "the same bits in every run on a GPU too, at some cost of speed; an operation that "
           "cannot "
           "ends the run")
      .add("device", choice(recipe.device, {"auto", "cpu", "cuda"}), "where to compute")
      .add("dist", describe(recipe.dist), "how the ranks exchange tensors")
      .add("worker", path(recipe.worker), "a worker program of your own, with its models")
      .add("output", path(recipe.output), "the run's folder; without it runs/NAME")
      .reserve({"safety"});
  return keys;
}

}  // namespace scaletrain::recipe
