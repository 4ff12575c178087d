#include "lib/core/process/host.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::core {

void check_host(const std::string& place, const std::string& host) {
  const bool is_usable = std::ranges::all_of(host, [](unsigned char one) {
    return one > ' ' && one != 0x7f && one != '[' && one != ']' && one != '/';
  });
  if (is_usable && !host.empty()) return;
  throw UsageError(place, fmt::format("\"{}\" is not a host name or address", printable(host)),
                   "give a name or an address, IPv6 without brackets: node-1, 10.0.0.1 or fd00::1");
}

}  // namespace scaletrain::core
