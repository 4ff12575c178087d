#include "lib/core/line_start.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "lib/core/descriptor.h"

namespace scaletrain::core {
namespace {

enum class Line { kEnded, kOpen, kUnknown };

std::atomic<Line>& line() {
  static std::atomic<Line> state{Line::kEnded};
  return state;
}

bool ends_with_a_line(off_t size) {
  if (size == 0) return true;
  const Descriptor file(open(path_of(STDERR_FILENO).c_str(), O_RDONLY | O_CLOEXEC));
  char last = 0;
  return pread(file.get(), &last, 1, size - 1) == 1 && last == '\n';
}

// A terminal does not say where its cursor stands. So many spaces as its lines are long end in the
// last column of this line where it stood at the beginning, and go on to the next one otherwise.
std::string over_a_line_of_a_terminal() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return "\n";
  return std::string(size.ws_col, ' ') + "\r";
}

std::string after_others() {
  struct stat status {};
  if (fstat(STDERR_FILENO, &status) != 0) return "";
  if (S_ISREG(status.st_mode)) return ends_with_a_line(status.st_size) ? "" : "\n";
  return isatty(STDERR_FILENO) == 1 ? over_a_line_of_a_terminal() : "\n";
}

}  // namespace

void note_error_stream(char last) { line() = last == '\n' ? Line::kEnded : Line::kOpen; }

void suspect_error_stream() {
  if (line() == Line::kEnded) line() = Line::kUnknown;
}

void leave_bar_of_terminal() {
  if (isatty(STDERR_FILENO) == 1) suspect_error_stream();
}

std::string to_line_start() {
  const Line before = line().exchange(Line::kEnded);
  if (before == Line::kUnknown) return after_others();
  return before == Line::kOpen ? "\n" : "";
}

}  // namespace scaletrain::core
