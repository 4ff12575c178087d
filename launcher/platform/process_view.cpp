#include "launcher/platform/process_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

std::string read_proc(pid_t pid, const char* name) {
  std::ifstream file(fmt::format("/proc/{}/{}", pid, name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const char* meaning(char state) {
  switch (state) {
    case 'R':
      return "runs";
    case 'S':
      return "sleeps";
    case 'D':
      return "waits for the kernel";
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'Z':
      return "has ended";
    default:
      return "unknown";
  }
}

}  // namespace

char process_state(pid_t pid) {
  const std::string stat = read_proc(pid, "stat");
  // The name before may hold anything, brackets too.
  const std::size_t bracket = stat.rfind(')');
  return bracket == std::string::npos || bracket + 2 >= stat.size() ? ' ' : stat[bracket + 2];
}

std::string describe_process(pid_t pid) {
  const char state = process_state(pid);
  std::string text = fmt::format("{} ({})", meaning(state), state);
  const std::string channel = read_proc(pid, "wchan");
  if (!channel.empty() && channel != "0") text += fmt::format(", in the kernel's {}", channel);
  return text;
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    const auto thread = core::parse_number<pid_t>(entry.path().filename().native());
    if (thread) threads.push_back(*thread);
  }
  std::sort(threads.begin(), threads.end(), [&](pid_t a, pid_t b) {
    return std::make_pair(a != pid, a) < std::make_pair(b != pid, b);
  });
  return threads;
}

}  // namespace scaletrain::launcher
