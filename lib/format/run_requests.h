// What a person asks of a run that goes on: a file in RUN/control, which the run takes away.
#pragma once

#include <filesystem>
#include <string>

#include "lib/core/disk.h"

namespace scaletrain::format {

inline constexpr const char* kSaveRequest = "checkpoint";  // to save behind the next step

// Throws core::StorageError.
void make_request(core::Disk& disk, const std::filesystem::path& run, const std::string& name);

// Whether there was such a request; it is gone then.
bool take_request(const std::filesystem::path& run, const std::string& name);

}  // namespace scaletrain::format
