#include "lib/recipe/sections/offload.h"

#include "lib/recipe/paths.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/clip.h"
#include "lib/recipe/sections/parallel.h"
#include "lib/recipe/sections/sam.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Offload>& value) {
  return optional(value, [](Offload& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("activations", flag(inner.activations),
              "what forward keeps for backward, but for the last unit's")
        .add("parameters", flag(inner.parameters),
             "the parts of a model that ranks hold together; before a unit runs each rank's is "
             "copied to the device and gathered from there. Needs optimizer too")
        .add("optimizer", flag(inner.optimizer),
             "the optimizer's state, and with it the update of the weights")
        .add("optimizer_folder", path(inner.optimizer_folder),
             "on a disk, NVMe at best, of each node: a file there has the optimizer's state in "
             "place of the host's memory, which holds three pieces of it at a time")
        .at_least_one({"activations", "parameters", "optimizer"});
    return keys;
  });
}

void check(const std::optional<Offload>& offload, const Parallel& parallel,
           const std::optional<Sam>& sam, const std::optional<Clip>& clip, const Node& tree,
           Problems& problems) {
  if (!offload) return;
  const auto refuse = [&](const char* key, const char* found, const char* remedy) {
    problems.add(written_at(tree, {"offload", key}), std::string("/offload/") + key, found, remedy);
  };
  if (!offload->optimizer && !offload->optimizer_folder.empty()) {
    refuse("optimizer_folder", "is for the state of an optimizer that is offloaded",
           R"(set "optimizer": true too)");
  }
  if (!offload->parameters) return;
  if (!offload->optimizer) {
    refuse("parameters", "parts that lie in the host's memory are updated there",
           R"(set "optimizer": true too)");
  }
  if (parallel.shard == 1 || parallel.shard_level != "parameters") {
    refuse("parameters", "is for ranks that each have a part of the parameters",
           R"(use "parallel": {"shard": N, "shard_level": "parameters"}, or leave it out)");
  }
  if (sam) {
    refuse("parameters", "sam moves the weights on the device",
           "leave one of them out in this version");
  }
  if (clip && clip->adaptive) {
    refuse("parameters", "clip.adaptive looks at the weights on the device",
           "leave one of them out in this version");
  }
}

}  // namespace scaletrain::recipe
