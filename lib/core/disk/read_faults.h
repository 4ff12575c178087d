// Distinguishes machine faults during reads from wrong paths and damaged files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace scaletrain::core {

// Throws the error for `error`, the errno of a failed read of `path`: StorageError, or
// OutOfMemoryError if descriptors or memory ran out. Returns without throwing if the file does not
// exist or must not be read (ENOENT, EACCES, ...); the caller handles that.
void throw_read_fault(const std::filesystem::path& path, int error);

// Returns the type of the file at `path`, following links; not_found for a dangling link. Throws
// Error naming the path if it cannot be determined.
std::filesystem::file_type type_at(const std::filesystem::path& path);

// Returns the sorted names in `folder`; {} if it does not exist. Throws StorageError or
// OutOfMemoryError naming it if it cannot be listed completely.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace scaletrain::core
