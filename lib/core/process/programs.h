// Files installed beside this program: other programs, and libraries that are loaded on demand.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::core {

// Returns the folder of this program's file.
std::filesystem::path own_folder();

// Returns the path of `name` beside this program; it may not exist.
std::string program_beside_us(const std::string& name);

// Symbol resolution of a loaded library for names that exist twice: kOfProgram prefers the
// program's symbols, kOwn the library's and those of the libraries that it links.
enum class Symbols { kOfProgram, kOwn };

// Loads a library beside this program for the rest of the process and returns its `symbol`. Throws
// UsageError with `place`, the linker's reason and `remedy`.
void* symbol_beside_us(const char* library, const char* symbol, const char* place,
                       const char* remedy, Symbols first = Symbols::kOfProgram);

}  // namespace scaletrain::core
