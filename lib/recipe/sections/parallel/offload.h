// CPU and disk offload: state that leaves the device's memory while it is not needed.
#pragma once

#include <optional>
#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Clip;
struct Parallel;
struct Sam;

struct Offload {
  bool activations = false;  // lib/engine/offload.h
  bool optimizer = false;    // lib/optim/host_optimizer.cpp
  // Offloads each rank's local shards of a sharded model (lib/parallel/sharded.h).
  bool parameters = false;
  std::string optimizer_folder;  // lib/optim/state_file.h; "": the state is in memory
};

TypePtr describe(std::optional<Offload>& value);

void check(const std::optional<Offload>& offload, const Parallel& parallel,
           const std::optional<Sam>& sam, const std::optional<Clip>& clip, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
