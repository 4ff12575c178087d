// Lint rules of the optimizer, its regularization and its averages.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/recipe/lint/rules.h"
#include "lib/recipe/lint/usual_rate.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

using OptionalAdvice = std::optional<LintAdvice>;

// Published recipes lie within this factor of the scaled rate, those for small batches included.
constexpr double kFarFactor = 30;

OptionalAdvice far_rate(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const std::optional<UsualRate> usual = usual_rate(recipe.optimizer, subject.global);
  if (!usual) return std::nullopt;
  const double rate = scaled_rate(recipe.optimizer, subject.global);
  const bool is_high = rate > usual->rate * kFarFactor;
  // Fine-tuning takes small rates.
  const bool is_low = !recipe.model.weights && rate < usual->rate / kFarFactor;
  if (!is_high && !is_low) return std::nullopt;
  return LintAdvice{
      "/optimizer/lr",
      fmt::format("{:.3g} is far {} {:.2g}, which is usual for {} with a global batch of {} ({})",
                  rate, is_high ? "above" : "below", usual->rate, recipe.optimizer.name,
                  subject.global, usual->source),
      fmt::format("start near {:.2g}, or measure it: scaletrain lr-find RECIPE", usual->rate)};
}

bool is_adaptive(const Optimizer& optimizer) {
  static constexpr std::array<std::string_view, 11> kNames{
      "adam",    "adamw",      "adamw_8bit",          "lamb", "lion", "lion_8bit", "nadam",
      "rmsprop", "rmsprop_tf", "schedule_free_adamw", "soap"};
  return std::ranges::find(kNames, optimizer.name) != kNames.end();
}

// A model with attention has "heads".
bool is_transformer(const Model& model) { return model.options.contains("heads"); }

OptionalAdvice no_warmup(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const Schedule& schedule = recipe.schedule;
  const bool warms_up =
      (schedule.warmup && schedule.warmup->value > 0) || schedule.decay.name == "one_cycle";
  if (warms_up || recipe.model.linear_probe || !is_transformer(recipe.model) ||
      !is_adaptive(recipe.optimizer)) {
    return std::nullopt;
  }
  return LintAdvice{
      "/schedule/warmup",
      fmt::format("{} trains the transformer {} without a warmup", recipe.optimizer.name,
                  recipe.model.name),
      R"(add a warmup of 1 to 10 % of the run, for example "warmup": {"steps": 500})"};
}

// torchvision's ImageNet recipes decay norms with 0.0001 and reach their accuracy.
constexpr double kStrongDecay = 0.001;

OptionalAdvice decayed_norms(const LintSubject& subject) {
  const Optimizer& optimizer = subject.recipe.optimizer;
  if (!optimizer.decay_norm_and_bias || optimizer.weight_decay < kStrongDecay) return std::nullopt;
  return LintAdvice{"/optimizer/decay_norm_and_bias",
                    fmt::format("norms and biases are decayed with {}", optimizer.weight_decay),
                    R"(leave "decay_norm_and_bias" out)"};
}

OptionalAdvice no_clip(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  if (recipe.clip || !reads_tokens(recipe.model)) return std::nullopt;
  return LintAdvice{"/clip", fmt::format("{} trains without gradient clipping", recipe.model.name),
                    R"(add "clip": {"norm": 1.0})"};
}

// Strong mixing makes most targets soft; a run this long profits from label smoothing as well.
constexpr double kStrongMix = 0.5, kLongEpochs = 300;

OptionalAdvice smoothing_with_mix(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const bool is_strong = recipe.mix->mixup >= kStrongMix || recipe.mix->cutmix >= kStrongMix;
  const std::optional<double> epochs = subject.epochs(recipe.length);
  if (recipe.loss.label_smoothing <= 0 || !is_strong || !epochs || *epochs >= kLongEpochs) {
    return std::nullopt;
  }
  return LintAdvice{
      "/loss/label_smoothing",
      fmt::format("{} together with mixup {} and cutmix {} in {:g} epochs",
                  recipe.loss.label_smoothing, recipe.mix->mixup, recipe.mix->cutmix, *epochs),
      R"(use one of them: "label_smoothing": 0, or no "mix")"};
}

// Share of the initial weights in the average, beyond which it lags behind the model.
constexpr double kMostInitial = 0.05;

OptionalAdvice long_ema(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const std::optional<double> steps = subject.steps(recipe.length);
  if (!steps || recipe.ema->warmup) return std::nullopt;
  const double updates = *steps / static_cast<double>(recipe.ema->every);
  for (const double decay : recipe.ema->decay) {
    const double initial = std::pow(decay, updates);
    if (initial <= kMostInitial) continue;
    return LintAdvice{
        "/ema/decay",
        fmt::format("{:g} leaves the initial weights a share of {:.0f} % after {:.0f} "
                    "updates",
                    decay, 100 * initial, updates),
        fmt::format("use at most {:.3g}, or \"warmup\": true",
                    std::pow(kMostInitial, 1 / updates))};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<LintRule>& optimizer_lint_rules() {
  static const std::vector<LintRule> rules{
      {"learning-rate",
       {"/optimizer/lr"},
       "a rate that is far too high diverges, one that is far too low wastes the run",
       far_rate},
      {"no-warmup",
       {"/optimizer"},
       "early adaptive steps are large where gradients of attention are large (Xiong et al. 2020)",
       no_warmup},
      {"norm-and-bias-decay",
       {"/optimizer/decay_norm_and_bias"},
       "it pulls the scales of norms to zero and limits no weights (He et al. 2019, Bag of tricks)",
       decayed_norms},
      {"no-clip",
       {"/model"},
       "single batches of text have gradients that undo many steps",
       no_clip},
      {"smoothing-with-mix",
       {"/mix", "/loss/label_smoothing"},
       "both soften the targets; a short run then underfits (Wightman et al. 2021, A2 and A3)",
       smoothing_with_mix},
      {"ema-too-long",
       {"/ema"},
       "the average is what is validated and kept, and it still contains the initial weights",
       long_ema}};
  return rules;
}

}  // namespace scaletrain::recipe
