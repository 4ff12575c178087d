// Text as one word of a shell's command line, so that a command can be copied.
#pragma once

#include <string>

namespace scaletrain::core {

// Returns `text` unchanged if it is a plain word for a POSIX shell, otherwise in single quotes.
std::string shell_word(const std::string& text);

}  // namespace scaletrain::core
