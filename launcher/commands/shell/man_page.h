// A command as a page of the manual (roff with the macros of man(7)).
#pragma once

#include <string>

#include "lib/core/text/command_table.h"

namespace scaletrain::launcher {

// `name` as a person types it: "scaletrain recipe check". The page is NAME with hyphens for blanks,
// in section 1. It lists the flags under their headings, and below it the commands with theirs.
std::string man_page(const core::Command& command, const std::string& name);

}  // namespace scaletrain::launcher
