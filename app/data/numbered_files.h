// The files of a set, NAME-000000.ENDING and on, in a local folder: which are there, and under
// which names new ones are written until all of them are whole.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace scaletrain::app {

// Whether `file` is `name`, '-', digits and one of the endings, such as ".tar".
bool is_numbered(std::string_view file, std::string_view name,
                 std::initializer_list<std::string_view> endings);

// Where this process writes what will be `path`: a hidden name in the same folder.
std::filesystem::path unfinished(const std::filesystem::path& path);

// Removes what processes that have ended, as by Ctrl-C, left in `folder` of a set `name`.
void remove_abandoned(const std::filesystem::path& folder, std::string_view name);

}  // namespace scaletrain::app
