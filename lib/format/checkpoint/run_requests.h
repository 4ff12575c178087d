// User requests to a running job: a file in RUN/control, which the run removes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/core/disk/disk.h"

namespace scaletrain::format {

inline constexpr const char* kSaveRequest = "checkpoint";  // saves a checkpoint after the next step
inline constexpr const char* kTraceRequest = "profile";    // traces the next steps

// Creates a request. Throws core::StorageError.
void make_request(core::Disk& disk, const std::filesystem::path& run, const std::string& name,
                  const std::string& content = "");

// Removes a request; returns true if it existed.
bool take_request(const std::filesystem::path& run, const std::string& name);

// Requests a trace of the next `steps` steps, 1 to kMaxTraceSteps. Throws core::StorageError.
inline constexpr std::int64_t kMaxTraceSteps = 1000;
void request_trace(core::Disk& disk, const std::filesystem::path& run, std::int64_t steps);
// Removes the request and returns its number of steps; nullopt if there is none or it is not a
// number.
std::optional<std::int64_t> take_trace_request(const std::filesystem::path& run);

}  // namespace scaletrain::format
