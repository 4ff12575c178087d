#include "lib/track/events/event_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::track {
namespace {

constexpr const char* kPlace = "log.on_event";
constexpr std::chrono::seconds kKillPatience{1};

class EventCommand : public EventSink {
 public:
  EventCommand(std::string command, std::chrono::milliseconds limit)
      : command_(std::move(command)), limit_(limit) {}

  void write(std::span<const Event> events) override {
    for (const Event& event : events) run(event);
  }

 private:
  void run(const Event& event) const {
    const core::Descriptor payload =
        core::make_memory_file("scaletrain-event", core::json_text(event.payload) + "\n");
    lseek(payload.get(), 0, SEEK_SET);
    core::Process process = core::Process::spawn(
        {.arguments = {"/bin/sh", "-c", command_},
         .variables = {{"SCALETRAIN_EVENT", event.name},
                       {"SCALETRAIN_RUN", event.payload.value("run", "")}},
         .descriptors = {{payload.get(), STDIN_FILENO}, {STDERR_FILENO, STDOUT_FILENO}}});
    pollfd watched{process.pidfd(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(limit_.count()));
    const std::optional<core::ExitStatus> status = process.ended();
    process.end_group(core::now() + kKillPatience);
    if (!status) {
      throw core::StorageError(kPlace,
                               fmt::format("took more than {} s for the event {} and was "
                                           "killed",
                                           static_cast<double>(limit_.count()) / 1000, event.name));
    }
    if (!status->ok()) {
      throw core::StorageError(kPlace, fmt::format("ended with {} for the event {}",
                                                   core::to_text(*status), event.name));
    }
  }

  std::string command_;
  std::chrono::milliseconds limit_;
};

}  // namespace

std::unique_ptr<EventSink> make_event_command(const std::string& command,
                                              std::chrono::milliseconds limit) {
  return std::make_unique<EventCommand>(command, limit);
}

}  // namespace scaletrain::track
