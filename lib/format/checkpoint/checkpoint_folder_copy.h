// Copies a checkpoint from another place into a run's folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lib/core/disk/disk.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::format {

// Publishes the checkpoint that `manifest` describes (publish_checkpoint) and returns its path.
// `fetch` copies each file and compares its checksum. A published copy that proves invalid is
// removed, and core::CheckpointError gives the reason.
std::filesystem::path publish_copy(
    core::Disk& disk, const std::filesystem::path& checkpoints, const Manifest& manifest,
    const std::function<void(const std::string& name, const std::filesystem::path& to)>& fetch);

}  // namespace scaletrain::format
