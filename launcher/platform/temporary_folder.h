// Where temporary files go.
#pragma once

#include <filesystem>

namespace scaletrain::launcher {

// TMPDIR, or /tmp where that is not set or cannot be written to. Throws core::StorageError where
// neither can.
std::filesystem::path temporary_folder();

}  // namespace scaletrain::launcher
