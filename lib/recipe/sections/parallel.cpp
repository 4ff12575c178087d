#include "lib/recipe/sections/parallel.h"

#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/tensor.h"

namespace scaletrain::recipe {

core::MeshSizes Parallel::mesh() const {
  core::MeshSizes sizes{.pipe = static_cast<int>(pipeline),
                        .shard = static_cast<int>(shard),
                        .tensor = static_cast<int>(tensor)};
  if (replica) sizes.replica = static_cast<int>(*replica);
  return sizes;
}

TypePtr describe(Parallel& value) {
  auto keys = std::make_unique<Object>();
  add_tensor_keys(*keys, value);
  return keys;
}

}  // namespace scaletrain::recipe
