#include "app/worker/store_command.h"

#include <arpa/inet.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string_view>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/dist/numeric_names.h"

namespace scaletrain::app {
namespace {

// The port that the listening socket `fd` is bound to.
std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  int listening = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw core::UsageError("--fd", fmt::format("{} is not a listening socket", fd),
                           "`scaletrain launch` starts this command");
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

int parse_fd(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[2]) == "--fd") {
    if (const auto fd = core::parse_number<int>(argv[3])) return *fd;
  }
  throw core::UsageError("store", "a listening socket is needed", "scaletrain-worker store --fd N");
}

}  // namespace

int run_store(int argc, char** argv) {
  const int fd = parse_fd(argc, argv);
  dist::use_numeric_names();
  std::signal(SIGPIPE, SIG_IGN);  // a client that dies before it is answered must not end the store
  c10d::TCPStoreOptions options;
  options.port = port_of(fd);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = fd;
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): its own thread serves while it lives
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  while (true) pause();
}

}  // namespace scaletrain::app
