// Sets the limit on open files for the workers of a recipe.
#pragma once

namespace scaletrain::launcher {

// Raises this process's limit, which its workers inherit, as far as needed for `ranks` and allowed.
// Throws core::Error of kMemory if it stays below the need of one rank: without descriptors the
// store would keep the other ranks waiting silently.
void provide_open_files(int ranks);

}  // namespace scaletrain::launcher
