// Reading where the machine may fail: its faults are kept apart from wrong paths and from damage.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace scaletrain::core {

// Throws the error for `error`, the errno of a failed read of `path`: StorageError, or
// OutOfMemoryError if descriptors or memory ran out. Returns without throwing if the file does not
// exist or must not be read (ENOENT, EACCES, ...); the caller handles that.
void throw_read_fault(const std::filesystem::path& path, int error);

// Returns the type of the file at `path`, links followed; not_found where it leads nowhere. Throws
// Error naming the path where that cannot be said.
std::filesystem::file_type type_at(const std::filesystem::path& path);

// Names of what lies in `folder`, sorted; none where it is absent. Throws StorageError or
// OutOfMemoryError naming it where it cannot be listed to its end.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace scaletrain::core
