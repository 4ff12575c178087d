#include "launcher/agents/inbox.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

// An agent that died between announcing a message and writing it holds up the others for so long.
constexpr std::chrono::milliseconds kMessagePatience{2000};

}  // namespace

std::vector<Message> Inbox::read(core::SteadyTime now) {
  std::vector<Message> messages;
  const std::int64_t written = store_.add("inbox", 0);
  while (read_ < written) {
    const std::optional<std::string> text = store_.get(fmt::format("inbox/{}", read_ + 1));
    if (!text) {
      if (due_ == core::SteadyTime{}) due_ = now + kMessagePatience;
      if (now < due_) break;
    }
    due_ = {};
    ++read_;
    if (!text) continue;
    try {
      messages.push_back(parse<Message>(*text));
    } catch (const core::InternalError& error) {
      core::warn("{}", error.what());  // another program's
    }
  }
  return messages;
}

}  // namespace scaletrain::launcher
