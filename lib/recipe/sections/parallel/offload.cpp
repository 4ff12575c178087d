#include "lib/recipe/sections/parallel/offload.h"

#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/clip.h"
#include "lib/recipe/sections/parallel/parallel.h"
#include "lib/recipe/sections/sam.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Offload>& value) {
  return optional(value, [](Offload& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("activations", flag(inner.activations),
              "Activation offload: forward copies activations to host memory and backward copies "
              "them back, except those of the last unit. Default: false.")
        .add("parameters", flag(inner.parameters),
             "Parameter offload, as ZeRO-Infinity: each rank keeps its parameter shards in host "
             "memory and copies them to the GPU before the all-gather. Default: false. Needs "
             "`optimizer` and `shard`.")
        .add("optimizer", flag(inner.optimizer),
             "Optimizer offload, as ZeRO-Offload: optimizer state stays in host memory, and the "
             "update runs on the CPU. Default: false.")
        .add("optimizer_folder", path(inner.optimizer_folder),
             "NVMe offload: folder on a local disk of each node for the optimizer state. Default: "
             "host memory. An update then has three portions of the state in memory.")
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
    refuse("optimizer_folder", "is for an offloaded optimizer", R"(set "optimizer": true too)");
  }
  if (!offload->parameters) return;
  if (!offload->optimizer) {
    refuse("parameters", "shards in host memory are updated there", R"(set "optimizer": true too)");
  }
  if (parallel.shard == 1 || parallel.shard_level != "parameters") {
    refuse("parameters", "is for sharded parameters",
           R"(use "parallel": {"shard": N, "shard_level": "parameters"}, or leave it out)");
  }
  if (sam) {
    refuse("parameters", "sam needs the weights on the device",
           "leave one of them out in this version");
  }
  if (clip && clip->adaptive) {
    refuse("parameters", "clip.adaptive needs the weights on the device",
           "leave one of them out in this version");
  }
}

}  // namespace scaletrain::recipe
