#include "lib/replica/wire.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/process/tcp.h"

namespace scaletrain::replica {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};  // interval at which `gives_up` is checked
constexpr std::size_t kLongestLine = 64 << 10;

}  // namespace

Wire::Wire(core::Descriptor fd, std::string place, milliseconds patience,
           const std::atomic<bool>& gives_up)
    : fd_(std::move(fd)), place_(std::move(place)), patience_(patience), gives_up_(gives_up) {}

// False if nothing arrived within that time.
bool Wire::poll(short events, milliseconds time) {
  const core::SteadyTime end = core::now() + time;
  for (;;) {
    if (gives_up_) lose("it is not waited for any longer");
    const auto left = std::chrono::ceil<milliseconds>(end - core::now());
    if (left.count() <= 0) return false;
    pollfd one{.fd = fd_.get(), .events = events, .revents = 0};
    if (::poll(&one, 1, static_cast<int>(std::min(left, kLook).count())) > 0) return true;
  }
}

void Wire::send(std::span<const std::byte> bytes) {
  const std::string lost = core::send_all(fd_.get(), bytes, [this](short events) {
    if (!poll(events, patience_)) lose("it takes nothing more");
  });
  if (!lost.empty()) lose(lost);
}

void Wire::send(std::string_view text) { send(std::as_bytes(std::span(text))); }

void Wire::send_size(std::uint32_t size) { send(std::as_bytes(std::span(&size, 1))); }

void Wire::receive(std::span<std::byte> bytes) {
  const std::string lost = core::receive_all(fd_.get(), bytes, [this](short events) {
    if (!poll(events, patience_)) lose("it does not answer");
  });
  if (!lost.empty()) lose(lost);
}

std::string Wire::receive_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  receive(std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint32_t Wire::receive_size() {
  std::uint32_t size = 0;
  receive(std::as_writable_bytes(std::span(&size, 1)));
  return size;
}

std::string Wire::receive_line() {
  std::string line;
  for (std::byte one{};;) {
    receive(std::span(&one, 1));
    if (one == std::byte{'\n'}) return line;
    line += static_cast<char>(one);
    if (line.size() > kLongestLine) lose("it says what nobody understands");
  }
}

bool Wire::wait() {
  for (char one = 0;;) {
    if (gives_up_) return false;
    pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(kLook.count())) <= 0) continue;
    const ssize_t count = recv(fd_.get(), &one, 1, MSG_PEEK);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    return count > 0;
  }
}

void Wire::lose(const std::string& why) const {
  throw core::StoppedError(place_, why, "check that its launcher runs and can be reached");
}

}  // namespace scaletrain::replica
