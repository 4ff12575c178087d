#include "lib/recipe/sections/data/storage.h"

#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(Storage& value) {
  auto keys = std::make_unique<Object>();
  keys->add("endpoint", endpoint(value.endpoint),
            "S3 endpoint of s3:// paths. Default: AWS_ENDPOINT_URL or the profile, then Amazon's.")
      .add("region", region(value.region),
           "S3 region. Default: AWS_REGION or the profile, then us-east-1.")
      .add("addressing",
           choice(value.addressing, {{"auto", "path if an endpoint is set, otherwise virtual."},
                                     {"path", "Bucket in the path."},
                                     {"virtual", "Bucket in the host name."}}),
           "S3 addressing style: bucket in the path or in the host name. Default: auto.")
      .add("connect_timeout_s", number(value.connect_timeout_s, from(0.01).to(3600)),
           "Connection timeout in seconds. Default: 10.")
      .add("stall_timeout_s", number(value.stall_timeout_s, from(1).to(3600)),
           "Seconds that a transfer may stay below 4 KiB/s. Default: 30.")
      .add("give_up_after_s", number(value.give_up_after_s, from(0).to(86400)),
           "Seconds for which a failed request is retried. Default: 300.");
  return keys;
}

}  // namespace scaletrain::recipe
