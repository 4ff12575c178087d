// Flags of `scaletrain checkpoint import`, declared once for the launcher, which checks them, and
// the worker, which runs the import.
#pragma once

#include "lib/core/text/cli_app.h"
#include "lib/exchange/import_plan.h"

namespace scaletrain::exchange {

void add_import_flags(CLI::App& command, ImportRequest& request);

}  // namespace scaletrain::exchange
