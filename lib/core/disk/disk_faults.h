// Errors that failed operations of the disk throw.
#pragma once

#include <filesystem>
#include <string_view>

namespace scaletrain::core {

// StorageError that names the path, what could not be done, `error`, an errno, and what to do.
[[noreturn]] void throw_disk_fault(const std::filesystem::path& path, std::string_view action,
                                   int error);

}  // namespace scaletrain::core
