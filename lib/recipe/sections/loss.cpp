#include "lib/recipe/sections/loss.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "lib/recipe/catalog/component.h"

namespace scaletrain::recipe {

TypePtr describe(Loss& value) {
  return component(value, losses(), [&value](Object& keys, const Row* /*row*/) {
    keys.add("label_smoothing", number(value.label_smoothing, from(0).below(1)),
             "Label smoothing: share of the target that is spread evenly over all classes. "
             "Default: 0. For example 0.1.")
        .add("class_weights", numbers(value.class_weights, from(0)),
             "Loss weight of each class, as `weight` of PyTorch's losses. Default: all 1. For "
             "example [1, 5] for two classes.")
        .add("chunk", integer(value.chunk, from(0).to(1e9)),
             "Chunked loss: number of tokens for which a language model's head and loss are "
             "computed at a time. Saves memory for the logits. Default: 0, all at once.");
  });
}

void check(const Loss& loss, const TaskRow& task, std::int64_t classes, const Node& tree,
           Problems& problems) {
  const std::vector<std::string>& fitting = task.losses;
  if (std::find(fitting.begin(), fitting.end(), loss.name) == fitting.end()) {
    problems.add(written_at(tree, {"loss"}), "/loss",
                 fmt::format("{} does not go with {}", loss.name, task.name),
                 fmt::format("use {}", fmt::join(fitting, " or ")));
  }
  if (loss.chunk > 0 && task.reads != TaskRow::Reads::kTokens) {
    problems.add(written_at(tree, {"loss", "chunk"}), "/loss/chunk",
                 "is a number of tokens, and these are images", "leave it out");
  }
  if (loss.class_weights.empty()) return;
  const Node& place = written_at(tree, {"loss", "class_weights"});
  if (task.reads == TaskRow::Reads::kTokens) {
    problems.add(place, "/loss/class_weights", "weighs classes, and these are tokens",
                 "leave it out");
  } else if (std::ssize(loss.class_weights) != classes) {
    problems.add(
        place, "/loss/class_weights",
        fmt::format("has {} numbers, and the model {} classes", loss.class_weights.size(), classes),
        "write one number for each class");
  } else if (std::all_of(loss.class_weights.begin(), loss.class_weights.end(),
                         [](double weight) { return weight == 0; })) {
    problems.add(place, "/loss/class_weights", "is 0 for every class", "leave it out");
  }
}

}  // namespace scaletrain::recipe
