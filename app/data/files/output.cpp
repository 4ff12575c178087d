#include "app/data/files/output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::app {

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) ::_exit(128 + SIGPIPE);
    if (written < 0) throw core::StorageError("standard output", core::errno_text(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void print_json(const nlohmann::ordered_json& json) { print(core::json_text(json, 1) + "\n"); }

}  // namespace scaletrain::app
