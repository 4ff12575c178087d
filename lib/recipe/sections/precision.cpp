#include "lib/recipe/sections/precision.h"

#include <fmt/format.h>

#include "lib/recipe/catalog/component.h"

namespace scaletrain::recipe {

TypePtr describe(Precision& value) {
  return component(value, precisions(), [&value](Object& keys, const Row* /*row*/) {
    keys.add("keep", texts(value.keep, "a name of linear layers, with * for any characters"),
             "Linear layers that compute in bf16 instead of fp8, for example `h.0.*`. Default: "
             "none but the first and the last, which always do.");
  });
}

void check(const Precision& precision, const Model& model, const Node& tree, Problems& problems) {
  const bool knows_layers =
      precision.name == "bf16_pure" || precision.name == "fp8" || precision.name == "fp64";
  if (!knows_layers || !model.row().has_rule(Rule::Kind::kOneUnit)) return;
  problems.add(written_at(tree, {"precision"}), "/precision",
               fmt::format("{} must know the model's layers, and {} does not show them",
                           precision.name, model.name),
               "use bf16, fp16, tf32 or fp32");
}

void check(const Precision& precision, const Optimizer& optimizer, const std::optional<Sam>& sam,
           const Node& tree, Problems& problems) {
  if (precision.name != "bf16_pure") return;
  if (optimizer.name == "schedule_free_adamw") {
    problems.add(written_at(tree, {"precision"}), "/precision",
                 fmt::format("{} keeps fp32 weights in its state, which bf16_pure is to avoid",
                             optimizer.name),
                 "use bf16, or another optimizer");
  }
  if (sam) {
    problems.add(
        written_at(tree, {"sam"}), "/sam",
        "perturbs weights by less than bf16 can represent, and bf16_pure has no fp32 weights",
        "leave it out, or use bf16");
  }
}

}  // namespace scaletrain::recipe
