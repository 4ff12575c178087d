// Stop requests by signals: a handler only sets a flag.
#pragma once

namespace scaletrain::core {

enum class StopReason : int { kNone = 0, kTerminate = 1, kInterrupt = 2 };

// Installs handlers: SIGTERM, SIGUSR1 and SIGUSR2 request kTerminate, SIGINT kInterrupt. A second
// SIGINT ends the process at once with status 130. SIGPIPE is ignored. Call once, before threads
// are started.
void install_stop_handlers();

// Returns the first stop request, or kNone.
StopReason stop_reason();

}  // namespace scaletrain::core
