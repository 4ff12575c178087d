#include "lib/core/process/shared_device.h"

#include <cstdlib>
#include <string_view>

namespace scaletrain::core {

bool shares_device() {
  const char* const wanted = std::getenv("SCALETRAIN_SHARE_DEVICE");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

}  // namespace scaletrain::core
