// User requests to a running job: a file in RUN/control, which the run removes.
#pragma once

#include <filesystem>
#include <string>

#include "lib/core/disk/disk.h"

namespace scaletrain::format {

inline constexpr const char* kSaveRequest = "checkpoint";  // saves a checkpoint after the next step

// Creates a request. Throws core::StorageError.
void make_request(core::Disk& disk, const std::filesystem::path& run, const std::string& name);

// Removes a request; returns true if it existed.
bool take_request(const std::filesystem::path& run, const std::string& name);

}  // namespace scaletrain::format
