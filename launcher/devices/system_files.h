// Short files of /proc and /sys: their text and numbers. Below a root folder, which tests replace.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::launcher {

// Returns the text of a file; nullopt if it cannot be read. `error`, if given, receives errno.
std::optional<std::string> system_text(const std::filesystem::path& file, int* error = nullptr);

// Returns the numbers of a text that blanks separate, up to the first that is none.
std::vector<double> numbers_of(std::string_view text);

// Returns the first number of a file.
std::optional<double> system_number(const std::filesystem::path& file, int* error = nullptr);

// Returns the names in a folder, sorted; empty if it cannot be read.
std::vector<std::string> system_names(const std::filesystem::path& folder);

}  // namespace scaletrain::launcher
