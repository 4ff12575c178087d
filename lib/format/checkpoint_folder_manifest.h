// manifest.json as text.
#pragma once

#include <string>

#include "lib/format/checkpoint_folder.h"

namespace scaletrain::format {

// What read_manifest reads, with its own checksum at the end.
std::string render_manifest(const Manifest& manifest);

}  // namespace scaletrain::format
