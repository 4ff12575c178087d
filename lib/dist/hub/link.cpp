#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <sstream>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/process/tcp.h"
#include "lib/dist/hub/hub.h"
#include "lib/dist/hub/socket.h"

namespace scaletrain::dist {
namespace {

constexpr std::chrono::seconds kConnectTime{30};
constexpr int kSilenceS = 30;  // a host silent for longer is gone

void wait_for(int fd, short events) {
  pollfd ready{.fd = fd, .events = events, .revents = 0};
  ::poll(&ready, 1, -1);
}

}  // namespace

void keep_alive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kSilenceS / 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kSilenceS / 6);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * kSilenceS);  // applies to unacknowledged data too
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

// The hub closes a connection whose word does not come within a second: a rank that was stopped
// between connecting and sending tries once more.
HubLink::HubLink(const std::string& address, int rank) : rank_(rank) {
  try {
    join(address);
  } catch (const core::StoppedError&) {
    join(address);
  }
}

void HubLink::join(const std::string& address) {
  std::istringstream words(address);
  std::string word, host, why;
  int port = 0;
  words >> word >> port >> host;
  fd_ = core::connect_to(host, port, kConnectTime, why);
  if (!fd_) lose(fmt::format("cannot be reached at {}: {}", host, why));
  keep_alive(fd_.get());
  const auto* const bytes = reinterpret_cast<const std::byte*>(word.data());
  send({.number = rank_, .body = {bytes, bytes + word.size()}});
  receive();
}

void HubLink::send(const HubMessage& message) {
  const HubHeader header{.kind = message.kind,
                         .number = message.number,
                         .step = message.step,
                         .bytes = message.body.size()};
  write(&header, sizeof header);
  write(message.body.data(), message.body.size());
}

HubMessage HubLink::receive() {
  HubHeader header{};
  read(&header, sizeof header);
  HubMessage message{.kind = header.kind,
                     .number = header.number,
                     .step = header.step,
                     .body = std::vector<std::byte>(header.bytes)};
  read(message.body.data(), message.body.size());
  return message;
}

std::optional<HubMessage> HubLink::receive_within(std::chrono::milliseconds time) {
  pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, static_cast<int>(time.count())) <= 0) return std::nullopt;
  return receive();
}

void HubLink::write(const void* bytes, std::size_t count) {
  const std::string why = core::send_all(fd_.get(), {static_cast<const std::byte*>(bytes), count},
                                         [this](short events) { wait_for(fd_.get(), events); });
  if (!why.empty()) lose(why);
}

void HubLink::read(void* bytes, std::size_t count) {
  const std::string why = core::receive_all(fd_.get(), {static_cast<std::byte*>(bytes), count},
                                            [this](short events) { wait_for(fd_.get(), events); });
  if (!why.empty()) lose(why);
}

void HubLink::lose(const std::string& why) const {
  throw core::StoppedError(fmt::format("rank {}", rank_),
                           fmt::format("{}: {}", core::kRank0WasLost, why),
                           "the log of rank 0 has the cause; resume from the newest checkpoint");
}

}  // namespace scaletrain::dist
