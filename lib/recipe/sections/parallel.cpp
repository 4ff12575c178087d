#include "lib/recipe/sections/parallel.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/checkpoint.h"
#include "lib/recipe/sections/clip.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/tensor.h"

namespace scaletrain::recipe {
namespace {

constexpr double kMostRanks = 65536;

// Optimizers that look at whole tensors, or at blocks of them.
constexpr std::array<std::string_view, 7> kOfWholeTensors{"adafactor", "adamw_8bit", "lamb", "lars",
                                                          "lion_8bit", "muon",       "soap"};

}  // namespace

core::MeshSizes Parallel::mesh() const {
  core::MeshSizes sizes{.pipe = static_cast<int>(pipeline),
                        .shard = static_cast<int>(shard),
                        .tensor = static_cast<int>(tensor)};
  if (replica) sizes.replica = static_cast<int>(*replica);
  return sizes;
}

TypePtr describe(Parallel& value) {
  auto keys = std::make_unique<Object>();
  keys->add("replica",
            optional(value.replica,
                     [](std::int64_t& count) { return integer(count, from(1).to(kMostRanks)); }),
            "copies of the model, which train on other samples; without it all ranks that are left")
      .add("shard", integer(value.shard, from(1).to(kMostRanks)),
           "ranks that hold a copy together, each a part, and train on other samples too")
      .add("shard_level", choice(value.shard_level, {"optimizer", "gradients", "parameters"}),
           "what a rank has a part of: the optimizer's state; the gradients too; the parameters "
           "too, all of which are there while their unit runs: ZeRO-1, -2, -3");
  add_tensor_keys(*keys, value);
  return keys;
}

void check(const Parallel& parallel, const Optimizer& optimizer, const std::optional<Clip>& clip,
           const Checkpoint& checkpoint, const Node& tree, Problems& problems) {
  const std::int64_t shard = parallel.shard;
  if (shard == 1) return;
  const auto refuse = [&](std::initializer_list<const char*> path, const std::string& pointer,
                          const std::string& what) {
    problems.add(written_at(tree, path), pointer,
                 fmt::format("{} looks at whole tensors, and of \"shard\": {} ranks each has parts",
                             what, shard),
                 R"(use "shard": 1, or what takes each element by itself)");
  };
  for (const std::string_view name : kOfWholeTensors) {
    if (optimizer.name == name) refuse({"optimizer"}, "/optimizer/name", optimizer.name);
  }
  if (optimizer.centralize_gradients) {
    refuse({"optimizer", "centralize_gradients"}, "/optimizer/centralize_gradients", "it");
  }
  if (clip && clip->adaptive) refuse({"clip", "adaptive"}, "/clip/adaptive", "it");
  if (checkpoint.writers == "rank_0") {
    problems.add(written_at(tree, {"checkpoint", "writers"}), "/checkpoint/writers",
                 fmt::format("rank 0 has only its part of the model, of \"shard\": {}", shard),
                 R"(use "auto": each rank writes its own part)");
  }
}

}  // namespace scaletrain::recipe
