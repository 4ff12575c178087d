// Lint rules of intervals that the run does not reach.
#include <fmt/format.h>

#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/lint/rules.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

std::string duration_text(const Duration& duration) {
  return fmt::format("{:g} {}", duration.value, unit_name(duration.unit));
}

std::string beyond_text(const Duration& duration, const Duration& run) {
  return fmt::format("{}, and the run has {}", duration_text(duration), duration_text(run));
}

std::optional<LintAdvice> long_warmup(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const Duration& warmup = *recipe.schedule.warmup;
  if (warmup.value == 0 || !subject.exceeds_run(warmup, /*or_equal=*/true)) return std::nullopt;
  return LintAdvice{"/schedule/warmup", beyond_text(warmup, recipe.length),
                    "use 1 to 10 % of the run"};
}

std::optional<LintAdvice> late_validation(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  if (!recipe.data.val && recipe.data.extra.empty()) return std::nullopt;
  if (!subject.exceeds_run(recipe.validate_every)) return std::nullopt;
  return LintAdvice{"/validate/every", beyond_text(recipe.validate_every, recipe.length),
                    "validate at least a few times, for example once an epoch"};
}

std::optional<LintAdvice> late_checkpoint(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const Checkpoint& checkpoint = recipe.checkpoint;
  if (checkpoint.automatic || !subject.exceeds_run(checkpoint.every)) return std::nullopt;
  return LintAdvice{"/checkpoint/every", beyond_text(checkpoint.every, recipe.length),
                    R"(save more often, or let "every": "auto" choose)"};
}

}  // namespace

const std::vector<LintRule>& length_lint_rules() {
  static const std::vector<LintRule> rules{
      {"warmup-too-long",
       {"/schedule/warmup"},
       "the learning rate rises until the end and never decays",
       long_warmup},
      {"validation-never-due",
       {"/validate/every"},
       "the model is measured once, at the end, and no best checkpoint can be chosen",
       late_validation},
      {"checkpoint-never-due",
       {"/checkpoint/every"},
       "a failure loses the whole run: the only checkpoint is the last one",
       late_checkpoint}};
  return rules;
}

}  // namespace scaletrain::recipe
