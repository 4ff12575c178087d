#include "lib/recipe/sections/integrity.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Integrity>& value) {
  return optional(value, [](Integrity& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("every", integer(inner.every, from(1).to(1e9)),
              "Steps between two comparisons of the replicas. They are compared before each "
              "validation and checkpoint as well. Default: 50.")
        .add("action",
             choice(inner.action,
                    {{"stop",
                      "Ends the run with exit code 65; every checkpoint of the run is verified."},
                     {"restore",
                      "Goes back to the last checkpoint and repeats the steps since then; a second "
                      "difference before replicas agree again ends the run."}}),
             "Action when replicas differ or a product is wrong. Default: stop.")
        .add("products",
             choice(inner.products, {{"off", "Products are not checked."},
                                     {"sampled", "Checks one linear layer in each step, in turn."},
                                     {"every", "Checks every linear layer."}}),
             "Checksums of the matrix products of linear layers in forward (algorithm-based fault "
             "tolerance). Wrong ones are reported at the next comparison. Default: off.");
    return keys;
  });
}

}  // namespace scaletrain::recipe
