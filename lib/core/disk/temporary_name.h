// Names of files and folders that are being written: "NAME.tmp.PID-START-PLACE" beside NAME.
//
// START is the start of the process in clock ticks since boot, PLACE identifies the boot and the
// process namespace, so a process number that is used again, after a reboot or in another
// container, is not mistaken for the writer.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

namespace scaletrain::core {

// Returns the temporary name for `name`, for a writer (process or thread) on this machine.
std::string temporary_name(const std::string& name, pid_t writer = ::getpid());

// A parsed temporary name.
struct Temporary {
  std::string name;        // final name
  pid_t writer = 0;        // PID or thread ID of the writer
  std::string identity{};  // "START-PLACE"; "": written by an earlier version, "NAME.tmp.PID"
};

// Returns nullopt for any other name.
std::optional<Temporary> parse_temporary(const std::string& name);

// True if the process that writes the temporary file or folder `path` is alive. Always false for a
// zombie and for a process of another machine or container. If the name has only a PID, its process
// is taken for the writer if it started before `path` was last changed; PID 1 never is, because
// each container has one.
bool has_living_writer(const std::filesystem::path& path, const Temporary& temporary);

}  // namespace scaletrain::core
