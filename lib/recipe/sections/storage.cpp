#include "lib/recipe/sections/storage.h"

#include "lib/recipe/paths.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(Storage& value) {
  auto keys = std::make_unique<Object>();
  keys->add("endpoint", endpoint(value.endpoint),
            "server of s3:// paths; without it that of AWS_ENDPOINT_URL or the profile, then "
            "Amazon's")
      .add("region", region(value.region),
           "without it that of AWS_REGION or the profile, then us-east-1")
      .add(
          "addressing", choice(value.addressing, {"auto", "path", "virtual"}),
          "whether the bucket stands in the path or in the host's name; auto: in the path where an "
          "endpoint is named")
      .add("connect_timeout_s", number(value.connect_timeout_s, from(0.01).to(3600)),
           "for one connection")
      .add("stall_timeout_s", number(value.stall_timeout_s, from(1).to(3600)),
           "how long a transfer may stay below 4 KiB/s")
      .add("give_up_after_s", number(value.give_up_after_s, from(0).to(86400)),
           "for how long a request that fails is tried again");
  return keys;
}

}  // namespace scaletrain::recipe
