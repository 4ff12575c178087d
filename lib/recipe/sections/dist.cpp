#include "lib/recipe/sections/dist.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(Dist& value) {
  auto keys = std::make_unique<Object>();
  keys->add("cpu", choice(value.cpu, {"auto", "gloo", "shm"}),
            "of CPUs: gloo is the network's; shm is memory that the ranks of one host share; auto "
            "is shm where all ranks are on one host");
  return keys;
}

}  // namespace scaletrain::recipe
