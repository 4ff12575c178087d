#include "lib/dist/numeric_names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

// The dynamic linker resolves a library's call to the program's own definition first. The linker
// exports the definition because libtorch_cpu needs the symbol.
extern "C" __attribute__((visibility("default"))) int getnameinfo(
    const sockaddr* address, socklen_t address_bytes, char* host, socklen_t host_bytes,
    char* service, socklen_t service_bytes, int flags) {
  using Function = decltype(&getnameinfo);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getnameinfo"));
  return next(address, address_bytes, host, host_bytes, service, service_bytes,
              flags | NI_NUMERICHOST);
}

namespace scaletrain::dist {

void use_numeric_names() {}

}  // namespace scaletrain::dist
