#include "launcher/workers/stacks.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "launcher/platform/process_view.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr std::chrono::milliseconds kThreadPatience{200};
constexpr std::chrono::microseconds kLook{200};
constexpr std::size_t kLongestFrame = 160;  // templates of LibTorch fill pages

std::string demangle(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  std::string result = status == 0 ? name.get() : symbol;
  if (result.size() > kLongestFrame) result = result.substr(0, kLongestFrame) + "...";
  return result;
}

// Converts "/lib/libc.so.6(_ZN1aE+0x1c) [0x7f00]" to "a + 0x1c (libc.so.6)". A frame without a
// symbol keeps only its offset in the file, for addr2line(1).
std::string readable(std::string_view line) {
  const std::size_t open = line.find('('), close = line.find(')', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::string(line);
  const std::string_view path = line.substr(0, open);
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const std::string_view place = line.substr(open + 1, close - open - 1);
  const std::size_t plus = place.rfind('+');
  if (plus == std::string_view::npos || plus == 0) return fmt::format("{} ({})", place, file);
  return fmt::format("{} + {} ({})", demangle(std::string(place.substr(0, plus))),
                     place.substr(plus + 1), file);
}

// Requests a thread's stack; true if the thread has written it.
bool ask(pid_t pid, pid_t thread, int signal, const core::BeatReader& beat,
         core::SteadyTime deadline) {
  const std::uint32_t before = beat.state().stacks;
  if (syscall(SYS_tgkill, pid, thread, signal) != 0) return false;
  const core::SteadyTime end = std::min(deadline, core::now() + kThreadPatience);
  while (core::now() < end) {
    if (beat.state().stacks != before) return true;
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

}  // namespace

std::vector<ThreadStack> capture_stacks(pid_t pid, const core::BeatReader& beat,
                                        core::SteadyTime deadline) {
  const int signal = beat.state().stack_signal;
  if (signal == 0 || is_stopped(process_state(pid))) return {};
  for (const pid_t thread : threads_of(pid)) {
    if (core::now() >= deadline) break;
    ask(pid, thread, signal, beat, deadline);
  }
  return parse_stacks(beat.stacks());
}

std::vector<ThreadStack> parse_stacks(std::string_view text) {
  std::vector<ThreadStack> stacks;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("thread ")) {
      stacks.push_back({.thread = core::printable(line), .frames = {}});
    } else if (!stacks.empty() && !line.empty()) {
      stacks.back().frames.push_back(core::printable(readable(line)));
    }
  }
  return stacks;
}

}  // namespace scaletrain::launcher
