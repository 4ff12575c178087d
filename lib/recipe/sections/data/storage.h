// Access to remote data (lib/storage/stores.h).
#pragma once

#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// How remote data is reached (lib/storage/stores.h).
struct Storage {
  std::string endpoint;             // for s3://; "": from the environment, else Amazon's
  std::string region;               // "": from the environment
  std::string addressing = "auto";  // "path", "virtual"; auto: path if an endpoint is given
  double connect_timeout_s = 10;
  double stall_timeout_s = 30;   // longest time without progress in a transfer
  double give_up_after_s = 300;  // time limit for retries of one request
};

TypePtr describe(Storage& value);

}  // namespace scaletrain::recipe
