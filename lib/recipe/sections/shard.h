// The keys of /parallel about ranks that hold a copy of the model together.
#pragma once

#include "lib/recipe/sections/parallel.h"

namespace scaletrain::recipe {

struct Recipe;
class Object;

TypePtr describe(Parallel& value);
void add_shard_keys(Object& keys, Parallel& value);

// What looks at whole tensors does not go with ranks that have parts of them.
void check_shards(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
