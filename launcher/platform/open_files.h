// The limit of open files for the workers of a recipe.
#pragma once

namespace scaletrain::launcher {

// Raises this process's own limit, which its workers inherit, as far as `ranks` need it and it may
// be raised. Throws core::Error of kMemory where it stays below what one rank needs: the store of a
// rank without descriptors keeps the others waiting in silence.
void provide_open_files(int ranks);

}  // namespace scaletrain::launcher
