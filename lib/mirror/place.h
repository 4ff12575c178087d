// Destination of remote checkpoint copies: a folder or an object store with the layout of a run's
// folder, PLACE/checkpoints/step-N/{files, manifest.json}. A copy is complete or absent there too:
// the manifest is written last and removed first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/retention.h"
#include "lib/mirror/open_checkpoint.h"
#include "lib/storage/stores.h"

namespace scaletrain::mirror {

class Place {
 public:
  virtual ~Place() = default;

  // Copies `checkpoint`; the copy is durable on return. Replaces a copy of the same step once the
  // new one is complete. Returns the bytes copied, 0 if the copy existed. Throws
  // core::CheckpointError if `checkpoint` itself is damaged, other core::Error if the place fails.
  // Calls `moved` repeatedly, from several threads, as a sign of progress.
  virtual std::int64_t put(const OpenCheckpoint& checkpoint,
                           const std::function<void()>& moved) = 0;

  // Removes copies that `retention` does not keep, after `newest` was put, and unfinished ones;
  // warns if one cannot be removed. Throws core::Error if `newest` is not complete there.
  virtual void retain(std::int64_t newest, const format::Retention& retention) = 0;

  // Cancels what is under way, if possible. May be called from any thread.
  virtual void cancel() = 0;
};

using HousekeepingPtr = std::shared_ptr<core::Housekeeping>;

// `path`: a folder or s3://BUCKET/PREFIX; `disk` is used for a folder, `settings` for a bucket.
std::unique_ptr<Place> make_place(const std::string& path, core::Disk& disk,
                                  const recipe::Storage& settings, HousekeepingPtr housekeeping);

// Factories of both kinds. `storage` must outlive the place.
std::unique_ptr<Place> make_folder_place(
    const std::string& path, core::Disk& disk,
    HousekeepingPtr housekeeping = std::make_shared<core::Housekeeping>());
std::unique_ptr<Place> make_object_place(
    const std::string& path, const storage::Storage& storage, std::function<void()> cancel = [] {},
    HousekeepingPtr housekeeping = std::make_shared<core::Housekeeping>());

// Returns "PLACE/checkpoints".
std::string checkpoints_of(const std::string& place);

}  // namespace scaletrain::mirror
