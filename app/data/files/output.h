// Standard output of a command: either all of it is written or the command fails, since a full disk
// behind `> FILE` must not leave half a file with exit code 0.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace scaletrain::app {

// Writes to standard output. If the reader has closed the pipe (`| head`), ends the program at
// once, as SIGPIPE would. Throws core::StorageError for other errors.
void print(std::string_view text);

// Prints indented JSON with a newline; invalid UTF-8 is replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace scaletrain::app
