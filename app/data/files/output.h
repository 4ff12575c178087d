// Standard output of a command. All of it arrives, or the command fails: a full disk behind `>
// FILE` must not end in half a file and exit code 0.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace scaletrain::app {

// Writes to standard output. A reader that has gone (`| head`) ends the program at once, as SIGPIPE
// would. Throws core::StorageError for anything else.
void print(std::string_view text);

// Indented, with a newline; bytes that are not UTF-8 are replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace scaletrain::app
