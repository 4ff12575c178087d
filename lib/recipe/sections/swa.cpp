#include "lib/recipe/sections/swa.h"

#include <fmt/format.h>

#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {
namespace {

const Units& countable() {
  static const Units units{Duration::Unit::kSteps, Duration::Unit::kEpochs};
  return units;
}

void refuse(const Node& tree, std::string found, std::string remedy, Problems& problems) {
  problems.add(written_at(tree, {"swa"}), "/swa", std::move(found), std::move(remedy));
}

}  // namespace

TypePtr describe(std::optional<Swa>& value) {
  return optional(value, [](Swa& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("start",
              optional(inner.start, [](Duration& start) { return duration(start, countable()); }),
              "Start of averaging, in steps or epochs of training. Default: three quarters of the "
              "training.")
        .add("every", duration(inner.every, countable()),
             "Interval at which the weights are added to the average, in steps or epochs. Default: "
             "1 epoch.")
        .add("lr", optional(inner.lr, [](double& lr) { return number(lr, above(0).to(1000)); }),
             "Constant learning rate that `anneal` leads to after `start`, as PyTorch's SWALR. "
             "Default: the schedule continues.")
        .add("anneal", duration(inner.anneal, countable(), true),
             "Annealing from the schedule's learning rate to `lr`, in steps or epochs after "
             "`start`. Default: 10 epochs.")
        .add("anneal_strategy",
             choice(inner.anneal_strategy,
                    {{"cos", "Half a cosine."}, {"linear", "Straight line."}}),
             "Shape of the annealing. Default: cos.");
    return keys;
  });
}

void check(const std::optional<Swa>& swa, bool has_ema, const Optimizer& optimizer,
           const Node& tree, Problems& problems) {
  if (!swa) return;
  if (is_mean_of_weights(optimizer)) {
    refuse(tree, fmt::format("{} evaluates and saves averaged weights already", optimizer.name),
           "leave it out", problems);
  } else if (has_ema) {
    refuse(tree, "averages the weights, and so does /ema", "leave one of them out", problems);
  }
}

void check(const std::optional<Swa>& swa, const Model& model, const Node& tree,
           Problems& problems) {
  if (!swa || !uses_batch_norm(model)) return;
  refuse(tree,
         fmt::format("averaged weights of {} would need their own BatchNorm statistics, which are "
                     "not computed",
                     model.name),
         model.options.contains("norm") ? R"(use "norm": "group" in /model, or /ema)"
                                        : "use /ema, or a model without BatchNorm",
         problems);
}

}  // namespace scaletrain::recipe
