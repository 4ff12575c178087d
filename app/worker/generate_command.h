#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Continues a text by a language model's checkpoint and prints it as it grows
// (docs/reference/generate.md). The flags are those of lib/recipe/generation.h.
int run_generate(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
