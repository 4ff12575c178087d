// Where our other programs are.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

// The folder of this program's own file.
std::filesystem::path own_folder();

// The path of `name` beside this program; it may not exist.
std::string program_beside_us(const std::string& name);

}  // namespace scaletrain::launcher
