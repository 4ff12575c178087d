// Locks a local folder against other processes of this machine.
#pragma once

#include <string>

#include "lib/core/descriptor.h"

namespace scaletrain::app {

// Waits for the lock and holds it until the descriptor is closed. On a file system without locks
// (flock) there is no lock and no error. Throws core::StorageError if the folder cannot be opened.
core::Descriptor lock_folder(const std::string& folder);

}  // namespace scaletrain::app
