// A stop that was asked for: a handler sets a flag, nothing else.
#pragma once

namespace scaletrain::core {

enum class StopReason : int { kNone = 0, kTerminate = 1, kInterrupt = 2 };

// SIGTERM, SIGUSR1 and SIGUSR2 ask for kTerminate, SIGINT for kInterrupt; a second SIGINT ends the
// process at once with status 130. SIGPIPE is ignored. Call once, before threads are started.
void install_stop_handlers();

// The first reason that was heard, kNone until then.
StopReason stop_reason();

}  // namespace scaletrain::core
