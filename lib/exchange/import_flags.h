// Flags of `scaletrain checkpoint import`, declared once for the launcher, which checks them, and
// the worker, which runs the import.
#pragma once

#include "lib/exchange/import_plan.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::exchange {

void add_import_flags(CLI::App& command, ImportRequest& request);

}  // namespace scaletrain::exchange
