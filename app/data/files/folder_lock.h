// A local folder for one process at a time, among those of this machine.
#pragma once

#include <string>

#include "lib/core/descriptor.h"

namespace scaletrain::app {

// Waits for the others, and holds the folder until the descriptor is closed. A file system that
// has no locks (flock) gives none, and no error. Throws core::StorageError for a folder that cannot
// be opened.
core::Descriptor lock_folder(const std::string& folder);

}  // namespace scaletrain::app
