#include "lib/recipe/sections/dist.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(Dist& value) {
  auto keys = std::make_unique<Object>();
  keys->add("cpu",
            choice(value.cpu, {{"auto", "`shm` if all ranks are on one host, otherwise `gloo`."},
                               {"gloo", "Gloo over TCP, for any number of hosts."},
                               {"shm", "Shared memory, faster than Gloo, for ranks on one host."}}),
            "Backend of collectives on CPU tensors. Default: auto.");
  return keys;
}

}  // namespace scaletrain::recipe
