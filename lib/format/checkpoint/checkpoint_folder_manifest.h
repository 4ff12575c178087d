// Reads and writes the text of manifest.json.
#pragma once

#include <filesystem>
#include <string>

#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::format {

// Returns the text for read_manifest, with its own checksum at the end.
std::string render_manifest(const Manifest& manifest);

// Throws core::CheckpointError if the file at `place` has another checksum than in its manifest.
void require_sum(const std::string& place, const FileEntry& found, const FileEntry& listed);

// Parses the `text` of the manifest at `path`; does not check that the shards cover all tensors.
// Throws core::CheckpointError.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& path);

}  // namespace scaletrain::format
