// `explain run RUN`: the story of a run over all attempts.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

void add_explained_story(CLI::App& explain, int& exit_status);

}  // namespace scaletrain::launcher
