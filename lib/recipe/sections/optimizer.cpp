#include "lib/recipe/sections/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/recipe/component.h"
#include "lib/recipe/schema/object_list.h"

namespace scaletrain::recipe {
namespace {

TypePtr describe_group(OptimizerGroup& value) {
  auto keys = std::make_unique<Object>();
  keys->require("match", text(value.match, "a name of parameters, with * for any characters"),
                "whose they are")
      .add("lr_scale", number(value.lr_scale, above(0).to(1000)),
           "their lr over what it would be, layer_decay included")
      .add("weight_decay",
           optional(value.weight_decay,
                    [](double& inner) { return number(inner, from(0).to(1000)); }),
           "theirs, norms and biases among them");
  return keys;
}

}  // namespace

TypePtr describe(Optimizer& value) {
  return component(value, optimizers(), [&value](Object& keys, const Row* /*row*/) {
    keys.require("lr", number(value.lr, above(0).to(1000)), "peak learning rate")
        .add("weight_decay", number(value.weight_decay, from(0).to(1000)),
             "how strongly weights are pulled to zero")
        .add("weight_decay_end",
             optional(value.weight_decay_end,
                      [](double& inner) { return number(inner, from(0).to(1000)); }),
             "weight_decay goes there over the whole training, by half a cosine as DINO's")
        .add("decay_norm_and_bias", flag(value.decay_norm_and_bias),
             "weight decay for norms and biases too")
        .add("layer_decay", number(value.layer_decay, above(0).to(1)),
             "lr of a layer over that of the next one towards the head, which has lr itself; as "
             "timm's --layer-decay")
        .add("lr_base_batch",
             optional(value.lr_base_batch,
                      [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
             "lr is meant for this global batch, and scaled with the real one")
        .add("lr_scaling", choice(value.lr_scaling, {"linear", "sqrt"}),
             "by how much: real batch / lr_base_batch, or the square root of that")
        .add("groups", object_list<OptimizerGroup>(value.groups, describe_group),
             "parameters that are trained otherwise, the first group whose pattern they fit")
        .add("centralize_gradients", flag(value.centralize_gradients),
             "the gradient of each output of a layer gets a mean of 0");
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
