#include "launcher/platform/captured.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kMostCaptured = 1 << 20;

// Reads available bytes; closes the pipe at its end.
void take_some(core::Descriptor& from, std::string& to) {
  std::array<char, 4096> buffer{};
  const ssize_t count = read(from.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) return from.reset();
  to.append(buffer.data(), std::min(static_cast<std::size_t>(count),
                                    kMostCaptured - std::min(kMostCaptured, to.size())));
}

std::string last_line_of(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::string Captured::trouble() const {
  const std::string how =
      timed_out ? fmt::format("not done after {:.0f} s", seconds) : core::to_text(status);
  const std::string line = last_line_of(error.empty() ? output : error);
  return line.empty() ? how : fmt::format("{}: {}", how, line);
}

Captured run_captured(core::SpawnRequest request, std::chrono::milliseconds limit,
                      StopSignals* stops) {
  const core::Descriptor nothing = core::open_nothing();
  core::Pipe output = core::make_pipe(), error = core::make_pipe();
  request.descriptors.insert(request.descriptors.end(),
                             {{nothing.get(), 0}, {output.write.get(), 1}, {error.write.get(), 2}});
  const core::SteadyTime start = core::now();
  const core::Process process = core::Process::spawn(request);
  output.write.reset();
  error.write.reset();
  Captured result;
  bool ended = false;  // as poll has reported: a second query might return another state
  while (output.read || error.read || !ended) {
    std::array<pollfd, 4> watched{
        pollfd{.fd = output.read.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = error.read.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = ended ? -1 : process.pidfd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = stops != nullptr ? stops->fd() : -1, .events = POLLIN, .revents = 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - (core::now() - start));
    if (left.count() <= 0) {
      result.timed_out = !process.ended();
      break;
    }
    poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (watched[0].revents != 0) take_some(output.read, result.output);
    if (watched[1].revents != 0) take_some(error.read, result.error);
    ended = ended || watched[2].revents != 0;
    if (watched[3].revents != 0) result.stop_signal = stops->next().value_or(0);
    if (result.stop_signal != 0) break;
  }
  result.seconds = core::seconds_since(start);
  result.status = process.ended().value_or(core::ExitStatus{.signal = SIGKILL});
  return result;
}

}  // namespace scaletrain::launcher
