#include "lib/recipe/sections/recompute.h"

#include <fmt/format.h>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Recompute>& value) {
  return optional(value, [](Recompute& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("units",
              optional(inner.units,
                       [](std::string& text) {
                         return choice(text, {{"none", "Recomputes nothing."},
                                              {"all", "Recomputes every unit but the last."}});
                       }),
              "Recomputes the activations of all units, or of none. For example \"all\".")
        .add("every",
             optional(inner.every,
                      [](std::int64_t& count) { return integer(count, from(1).to(kMostCount)); }),
             "Recomputes one unit out of this many, starting with the first. For example 2 for "
             "every other unit.")
        .add("match", texts(inner.match, "a name of units, with * for any characters"),
             "Recomputes the units with these names, for example `h.*`.")
        .add("budget_mb",
             optional(inner.budget_mb,
                      [](std::int64_t& count) { return integer(count, from(1).to(1e9)); }),
             "Selective activation checkpointing: recomputes as many units as needed to keep "
             "activations within this many megabytes (10^6 bytes) per device. Units are measured "
             "when training begins.")
        .exactly_one({"units", "every", "match", "budget_mb"})
        .set_short_for("units");
    return keys;
  });
}

void check(const std::optional<Recompute>& recompute, const Model& model, const Node& tree,
           Problems& problems) {
  if (!recompute || recompute->is_none() || units_of(model) != 1) return;
  problems.add(written_at(tree, {"recompute"}), "/recompute",
               fmt::format("{} has one unit, and backward needs all of it at once", model.name),
               "leave it out");
}

}  // namespace scaletrain::recipe
