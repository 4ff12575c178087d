// The flags of `scaletrain checkpoint import`, declared once: for the launcher, which checks them,
// and for the worker, which does it.
#pragma once

#include "lib/exchange/import_plan.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::exchange {

void add_import_flags(CLI::App& command, ImportRequest& request);

}  // namespace scaletrain::exchange
