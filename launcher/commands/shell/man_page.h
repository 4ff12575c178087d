// Renders a command as a manual page (roff with the macros of man(7)).
#pragma once

#include <string>

#include "lib/core/text/command_table.h"

namespace scaletrain::launcher {

// `name` as typed: "scaletrain recipe check". The page's name has hyphens for blanks, in section 1.
// It lists the flags under their headings, and the sub-commands with theirs.
std::string man_page(const core::Command& command, const std::string& name);

}  // namespace scaletrain::launcher
