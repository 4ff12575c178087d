#include "lib/recipe/sections/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/recipe/catalog/component.h"
#include "lib/recipe/schema/object_list.h"

namespace scaletrain::recipe {
namespace {

TypePtr describe_group(OptimizerGroup& value) {
  auto keys = std::make_unique<Object>();
  keys->require("match", text(value.match, "a name of parameters, with * for any characters"),
                "Parameters of this group, for example `head.*`.")
      .add("lr_scale", number(value.lr_scale, above(0).to(1000)),
           "Factor of the learning rate of this group, on top of layer_decay. Default: 1. For "
           "example 0.1.")
      .add("weight_decay",
           optional(value.weight_decay,
                    [](double& inner) { return number(inner, from(0).to(1000)); }),
           "Weight decay of this group, also for its norms and biases. Default: that of the "
           "optimizer.");
  return keys;
}

}  // namespace

TypePtr describe(Optimizer& value) {
  return component(value, optimizers(), [&value](Object& keys, const Row* /*row*/) {
    keys.require("lr", number(value.lr, above(0).to(1000)),
                 "Base learning rate after warmup, for example 0.001. Scaled with the global batch "
                 "when `lr_base_batch` is set.")
        .add("weight_decay", number(value.weight_decay, from(0).to(1000)),
             "Weight decay (L2) coefficient. Default: 0. For example 0.05 with AdamW. Norms and "
             "biases are excluded unless `decay_norm_and_bias` is set.")
        .add("weight_decay_end",
             optional(value.weight_decay_end,
                      [](double& inner) { return number(inner, from(0).to(1000)); }),
             "Final weight decay, reached at the end of training along half a cosine, as DINO's "
             "schedule. Default: constant weight decay. For example 0.4.")
        .add("decay_norm_and_bias", flag(value.decay_norm_and_bias),
             "Applies weight decay to norms and biases too. Default: false.")
        .add("layer_decay", number(value.layer_decay, above(0).to(1)),
             "Layer-wise learning rate decay, as timm's --layer-decay: each layer's lr is this "
             "factor times that of the next layer towards the head. Default: 1, off. For example "
             "0.75.")
        .add("lr_base_batch",
             optional(value.lr_base_batch,
                      [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
             "Global batch size that lr is meant for, as timm's --lr-base-size. With another "
             "global batch lr is scaled by lr_scaling. Default: no scaling. For example 256.")
        .add("lr_scaling",
             choice(value.lr_scaling,
                    {{"linear", "lr x (global batch / lr_base_batch)."},
                     {"sqrt", "lr x square root of (global batch / lr_base_batch)."}}),
             "Scaling of the learning rate with the global batch; needs lr_base_batch. Default: "
             "linear.")
        .add("groups", object_list<OptimizerGroup>(value.groups, describe_group),
             "Parameter groups with their own lr and weight decay. A parameter belongs to the "
             "first group whose pattern matches its name. Default: none.")
        .add("centralize_gradients", flag(value.centralize_gradients),
             "Gradient centralization: subtracts from the gradient of each output unit its mean. "
             "Default: false.");
  });
}

bool is_mean_of_weights(const Optimizer& optimizer) {
  return optimizers().find(optimizer.name)->has_rule(Rule::Kind::kIsMean);
}

void check(const Optimizer& optimizer, const Node& tree, Problems& problems) {
  const std::vector<OptimizerGroup>& groups = optimizer.groups;
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    const auto same = std::find_if(groups.begin(), group, [&](const OptimizerGroup& earlier) {
      return earlier.match == group->match;
    });
    if (same == group) continue;
    problems.add(written_at(tree, {"optimizer", "groups"}),
                 fmt::format("/optimizer/groups/{}/match", group - groups.begin()),
                 fmt::format("\"{}\" is the pattern of group {} already", group->match,
                             same - groups.begin()),
                 "make one group of them");
  }
}

}  // namespace scaletrain::recipe
