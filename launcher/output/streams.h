// Destinations of the two output streams of a program's workers: torchrun's --redirects and --tee,
// and the filters by rank.
#pragma once

#include <string>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "launcher/place/placement.h"

namespace scaletrain::launcher {

// One stream of one worker.
struct StreamChoice {
  bool to_file = false;
  bool to_console = true;
  bool prefixed = false;  // each line on the console begins with [ROLE<local rank>]:
};

struct WorkerStreams {
  StreamChoice standard_output, standard_error;
};

// Returns the choices by local rank. A redirected stream goes only to its file, a tee'd one to
// both; with --log-dir and neither flag both streams go to both, without a prefix. A rank excluded
// by the filters shows nothing on the console; filters for ranks that do not exist have no effect.
// Throws core::UsageError.
std::vector<WorkerStreams> choose_streams(const LaunchOptions& options, const Placement& placement);

}  // namespace scaletrain::launcher
