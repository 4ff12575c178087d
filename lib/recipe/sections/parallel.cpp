#include "lib/recipe/sections/parallel.h"

namespace scaletrain::recipe {

core::MeshSizes Parallel::mesh() const {
  core::MeshSizes sizes{.pipe = static_cast<int>(pipeline),
                        .shard = static_cast<int>(shard),
                        .tensor = static_cast<int>(tensor)};
  if (replica) sizes.replica = static_cast<int>(*replica);
  return sizes;
}

}  // namespace scaletrain::recipe
