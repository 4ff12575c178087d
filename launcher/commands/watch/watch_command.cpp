#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/run_status.h"
#include "launcher/commands/watch/metrics_follower.h"
#include "launcher/commands/watch/watch_screen.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kLookAgainMs = 1000;
constexpr int kNarrowest = 40, kWidest = 1000;
constexpr int kLogLines = 4;
constexpr std::streamoff kLogTailBytes = 4096;
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, hidden cursor
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

struct WatchArguments {
  std::string run;
  bool once = false;
  int width = 0;  // 0: the terminal's
};

ScreenSize screen_size(const WatchArguments& arguments) {
  ScreenSize size;
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size = {.width = std::max<int>(window.ws_col, kNarrowest), .height = window.ws_row};
  }
  if (arguments.width > 0) size.width = arguments.width;
  return size;
}

// The end of rank 0's standard error in the newest attempt.
std::vector<std::string> last_log_lines(const fs::path& run, const Json& status) {
  if (!status["attempt"].is_number()) return {};
  std::ifstream file(
      run / "logs" / fmt::format("attempt_{}", status["attempt"].get<int>()) / "0" / "stderr.log",
      std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff begin = std::max<std::streamoff>(0, file.tellg() - kLogTailBytes);
  file.seekg(begin);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (begin > 0 && !lines.empty()) lines.erase(lines.begin());  // the first line may be incomplete
  if (lines.size() > kLogLines) lines.erase(lines.begin(), lines.end() - kLogLines);
  return lines;
}

std::vector<std::string> draw(const WatchArguments& arguments, MetricsFollower& metrics,
                              const WatchView& view = {}) {
  const Json status = run_status(arguments.run);
  metrics.read();
  return watch_screen(status, metrics.curves(), last_log_lines(arguments.run, status),
                      screen_size(arguments), view);
}

bool put(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

// Turns off echo and line buffering, and restores the terminal on destruction.
class Terminal {
 public:
  Terminal() : is_input_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (is_input_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    put(kEnter);
  }
  ~Terminal() {
    put(kLeave);
    if (is_input_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits for a key, a resize or the next look at the run; false: a person wants to leave. Other
  // keys change `view`.
  static bool wait(int signals, bool is_input, WatchView& view) {
    std::array<pollfd, 2> watched{pollfd{signals, POLLIN, 0},
                                  pollfd{is_input ? STDIN_FILENO : -1, POLLIN, 0}};
    if (poll(watched.data(), watched.size(), kLookAgainMs) <= 0) return true;
    signalfd_siginfo signal{};
    if ((watched[0].revents & POLLIN) != 0 &&
        ::read(signals, &signal, sizeof signal) == sizeof signal) {
      return signal.ssi_signo == SIGWINCH;
    }
    if (watched[1].revents == 0) return true;
    char key = 'q';  // the terminal has gone
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return false;
    if (key == 's') view.smooth = !view.smooth;
    if (key == 'l') view.log_loss = !view.log_loss;
    if (key >= '1' && key < '1' + static_cast<int>(view.hidden.size())) {
      bool& hidden = view.hidden[static_cast<std::size_t>(key - '1')];
      hidden = !hidden;
    }
    return true;
  }
  bool is_input() const { return is_input_; }

 private:
  termios before_{};
  bool is_input_;
};

void watch_on_terminal(const WatchArguments& arguments) {
  MetricsFollower metrics(fs::path(arguments.run) / "metrics.jsonl");
  WatchView view{.has_keys = isatty(STDIN_FILENO) == 1};
  std::vector<std::string> lines = draw(arguments, metrics, view);  // throws before it is shown
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGWINCH, SIGINT, SIGTERM, SIGHUP}) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  const core::Descriptor signals(signalfd(-1, &handled, SFD_CLOEXEC));
  const Terminal terminal;
  while (true) {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
    }
    if (!put(text + "\x1b[J") || !Terminal::wait(signals.get(), terminal.is_input(), view)) return;
    lines = draw(arguments, metrics, view);
  }
}

void watch(const WatchArguments& arguments) {
  if (!arguments.once && isatty(STDOUT_FILENO) == 1) {
    watch_on_terminal(arguments);
    return;
  }
  MetricsFollower metrics(fs::path(arguments.run) / "metrics.jsonl");
  for (const std::string& line : draw(arguments, metrics)) put(line + "\n");
}

}  // namespace

void add_watch_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<WatchArguments>();
  CLI::App* const command =
      app.add_subcommand("watch", "Show the curves of a run in the terminal while it trains");
  command->add_option("RUN", arguments->run, "Run folder.")->required();
  command->add_flag("--once", arguments->once,
                    "Print one screen and exit, as when standard output is no terminal.");
  command
      ->add_option("--width", arguments->width,
                   "Width of the screen in columns. Default: that of the terminal.")
      ->check(CLI::Range(kNarrowest, kWidest));
  command->callback([arguments, &exit_status] {
    watch(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
