#include "lib/recipe/sections/data/storage.h"

#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(Storage& value) {
  auto keys = std::make_unique<Object>();
  keys->add("endpoint", endpoint(value.endpoint),
            "S3 endpoint for s3:// paths, for example of MinIO. Default: AWS_ENDPOINT_URL or the "
            "AWS profile, otherwise Amazon S3.")
      .add("region", region(value.region),
           "S3 region, for example eu-central-1. Default: AWS_REGION or the AWS profile, otherwise "
           "us-east-1.")
      .add("addressing",
           choice(value.addressing,
                  {{"auto", "`path` if an endpoint is set, otherwise `virtual`."},
                   {"path", "Bucket in the path: https://HOST/BUCKET/KEY."},
                   {"virtual", "Bucket in the host name: https://BUCKET.HOST/KEY."}}),
           "S3 addressing style. Default: auto.")
      .add("connect_timeout_s", number(value.connect_timeout_s, from(0.01).to(3600)),
           "Timeout for establishing a connection, in seconds. Default: 10.")
      .add("stall_timeout_s", number(value.stall_timeout_s, from(1).to(3600)),
           "Time that a transfer may stay below 4 KiB/s before it is retried, in seconds. Default: "
           "30.")
      .add("give_up_after_s", number(value.give_up_after_s, from(0).to(86400)),
           "Time for which a failed request is retried before it is an error, in seconds. Default: "
           "300.");
  return keys;
}

}  // namespace scaletrain::recipe
