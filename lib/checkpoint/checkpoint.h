// Writes checkpoints; lib/checkpoint/shard_reader.h reads them.
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

// Writes RUN/checkpoints/step-N and returns once it is durable. With `writers`, `contents` are rank
// 0's share, and all other ranks call write_share(). With `kept`, `contents` are a share, even with
// one writer, and unchanged tensors are hard-linked from the last checkpoint. `housekeeping` counts
// failures that do not affect durability. With `read_back`, a callback for each file read, all
// files are read again and compared with memory before the checkpoint is published. Throws
// core::CheckpointError naming the first tensor that differs, core::DivergedError if a tensor is
// not finite, and the errors of Writers::collect().
Written write(core::Disk& disk, const std::filesystem::path& run, const Contents& contents,
              Writers* writers = nullptr, KeptFiles* kept = nullptr,
              core::Housekeeping* housekeeping = nullptr,
              const std::function<void()>& read_back = {});

// Writes the share of a rank other than 0. Throws the errors of Writers::follow(); all other errors
// are thrown on rank 0.
void write_share(core::Disk& disk, const std::filesystem::path& run, const Contents& share,
                 Writers& writers, KeptFiles* kept = nullptr);

// Finishes a durable write: points latest at the checkpoint and best at the first of
// state.best_steps, then removes what `retention` does not keep. Throws core::StorageError if a
// file of that checkpoint has lost bytes; any other failure is a warning.
void settle(core::Disk& disk, const std::filesystem::path& run, std::int64_t step,
            const format::Retention& retention, core::Housekeeping& housekeeping);

// Calls write() and settle(). Returns the path.
std::filesystem::path save(core::Disk& disk, const std::filesystem::path& run,
                           const Contents& contents, const format::Retention& retention);

}  // namespace scaletrain::checkpoint
