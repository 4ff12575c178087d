// How remote data is reached.
#pragma once

#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// How remote data is reached (lib/storage/stores.h).
struct Storage {
  std::string endpoint;             // for s3://; "": from the environment, otherwise Amazon's
  std::string region;               // "": from the environment
  std::string addressing = "auto";  // "path", "virtual"; auto: path where an endpoint is named
  double connect_timeout_s = 10;
  double stall_timeout_s = 30;   // a transfer may be (nearly) still for so long
  double give_up_after_s = 300;  // for how long one request is tried again
};

TypePtr describe(Storage& value);

}  // namespace scaletrain::recipe
