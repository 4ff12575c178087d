// Text as one word of a shell's command line, so that a command can be copied.
#pragma once

#include <string>

namespace scaletrain::core {

// `text` as it is where a POSIX shell takes it as one plain word, otherwise in single quotes.
std::string shell_word(const std::string& text);

}  // namespace scaletrain::core
