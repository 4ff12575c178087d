// Errors of failed disk operations.
#pragma once

#include <filesystem>
#include <string_view>

namespace scaletrain::core {

// Throws StorageError with the path, the failed action, `error` (an errno) and a remedy.
[[noreturn]] void throw_disk_fault(const std::filesystem::path& path, std::string_view action,
                                   int error);

}  // namespace scaletrain::core
