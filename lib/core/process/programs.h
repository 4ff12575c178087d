// Files installed beside this program: the other programs, and libraries that are opened on
// demand.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::core {

// The folder of this program's own file.
std::filesystem::path own_folder();

// The path of `name` beside this program; it may not exist.
std::string program_beside_us(const std::string& name);

// Symbol lookup of a library that is opened, if two symbols have one name: the program's first, or
// its own and those of the libraries it links.
enum class Symbols { kOfProgram, kOwn };

// Opens a library beside this program for the rest of the process; the result: its `symbol`.
// Throws UsageError with `place`, the linker's reason and `remedy`.
void* symbol_beside_us(const char* library, const char* symbol, const char* place,
                       const char* remedy, Symbols first = Symbols::kOfProgram);

}  // namespace scaletrain::core
