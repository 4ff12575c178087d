// manifest.json as text.
#pragma once

#include <string>

#include "lib/format/checkpoint_folder.h"

namespace scaletrain::format {

// What read_manifest reads, with its own checksum at the end.
std::string render_manifest(const Manifest& manifest);

// Throws core::CheckpointError where a file at `place` has another sum than its manifest says.
void require_sum(const std::string& place, const FileEntry& found, const FileEntry& listed);

}  // namespace scaletrain::format
