// Writes and reads checkpoints.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/kept_files.h"
#include "lib/checkpoint/tensors.h"
#include "lib/checkpoint/writers.h"
#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/retention.h"

namespace scaletrain::checkpoint {

using format::read_state;

// A published checkpoint.
struct Written {
  std::filesystem::path path;
  std::int64_t bytes = 0;   // total size of its files
  std::int64_t linked = 0;  // part of `bytes` hard-linked from an earlier checkpoint
};

// Writes RUN/checkpoints/step-N; returns once it is durable. With `writers`, `contents` are rank
// 0's share, and all other ranks call write_share. With `kept`, `contents` are a share, if only of
// one writer, and what has not changed since the last one is linked. Throws core::DivergedError
// where a tensor is not finite, and what Writers::collect does. `housekeeping`: the run's. With
// `read_back`, which is called for each file that is read, all files are read and compared with
// what was in memory before they count as a checkpoint: core::CheckpointError naming the first
// tensor that differs.
Written write(core::Disk& disk, const std::filesystem::path& run, const Contents& contents,
              Writers* writers = nullptr, KeptFiles* kept = nullptr,
              core::Housekeeping* housekeeping = nullptr,
              const std::function<void()>& read_back = {});

// Another rank's part in a write: its share. Throws what Writers::follow does; rank 0 throws what
// else went wrong.
void write_share(core::Disk& disk, const std::filesystem::path& run, const Contents& share,
                 Writers& writers, KeptFiles* kept = nullptr);

// Finishes a durable write: points latest at the checkpoint and best at the first of
// state.best_steps, then removes what `retention` does not keep. Throws core::StorageError if a
// file of that checkpoint has lost bytes; any other failure is a warning.
void settle(core::Disk& disk, const std::filesystem::path& run, std::int64_t step,
            const format::Retention& retention, core::Housekeeping& housekeeping);

// Both. Returns the path.
std::filesystem::path save(core::Disk& disk, const std::filesystem::path& run,
                           const Contents& contents, const format::Retention& retention);

// Copies the tensors of a verified checkpoint into `contents` (whose tensors give names, shapes and
// dtypes) and fills state, classes and recipe. Throws core::CheckpointError naming the first
// tensors that are missing, left over or of another shape.
void load(
    const std::filesystem::path& checkpoint, Contents& contents, const Progress& progress = [] {});

// Copies the weights alone into `tensors`, with the same checks but that a floating type may be
// another: "model", or what else format::weights_file knows.
void load_model(
    const std::filesystem::path& checkpoint, Tensors& tensors, const Progress& progress = [] {},
    std::string_view weights = "model");

// Copies each rank's own buffers into `tensors`, [ranks, ...], those of the "model" or of a mean
// that the checkpoint has, with the same checks; leaves them as they are where it has none.
void load_buffers(const std::filesystem::path& checkpoint,
                  std::map<std::string, at::Tensor>& tensors, std::string_view weights = "model");

// Copies what else each rank had of its own into `tensors`, [ranks, ...], with the same checks;
// false where the checkpoint has nothing of that.
bool load_ranks(const std::filesystem::path& checkpoint, const Tensors& tensors);

}  // namespace scaletrain::checkpoint
