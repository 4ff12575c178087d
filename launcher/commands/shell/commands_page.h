// All commands and flags as a Markdown page: docs/reference/commands.md is this text.
#pragma once

#include <string>

#include "lib/core/text/command_table.h"

namespace scaletrain::launcher {

std::string commands_page(const core::Command& table);

}  // namespace scaletrain::launcher
