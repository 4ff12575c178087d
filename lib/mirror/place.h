// Where copies of a run's checkpoints lie: a folder or an object store, laid out as a run's folder,
// PLACE/checkpoints/step-N/{files, manifest.json}. There too a checkpoint is whole or absent: the
// manifest is written last, and taken away first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/core/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/retention.h"
#include "lib/mirror/open_checkpoint.h"
#include "lib/storage/stores.h"

namespace scaletrain::mirror {

class Place {
 public:
  virtual ~Place() = default;

  // Copies `checkpoint`; when this returns, the copy is durable. One of the same step that is there
  // is replaced when the new one is whole. The result: bytes copied, 0 where it was there already.
  // Throws core::CheckpointError where `checkpoint` itself is damaged, any other core::Error where
  // the place fails. `moved` is called again and again, by several threads.
  virtual std::int64_t put(const OpenCheckpoint& checkpoint,
                           const std::function<void()>& moved) = 0;

  // Removes what `retention` does not keep, after `newest` was put, and what was left half done;
  // what cannot be removed is a warning. Throws core::Error if `newest` is not whole there.
  virtual void retain(std::int64_t newest, const format::Retention& retention) = 0;

  // Ends what is under way, as far as that is possible; from any thread.
  virtual void cancel() = 0;
};

using HousekeepingPtr = std::shared_ptr<core::Housekeeping>;

// `path`: a folder or s3://BUCKET/PREFIX. `disk` is for a folder, `settings` are for a bucket.
std::unique_ptr<Place> make_place(const std::string& path, core::Disk& disk,
                                  const recipe::Storage& settings, HousekeepingPtr housekeeping);

// The two kinds. `storage` must outlive the place.
std::unique_ptr<Place> make_folder_place(
    const std::string& path, core::Disk& disk,
    HousekeepingPtr housekeeping = std::make_shared<core::Housekeeping>());
std::unique_ptr<Place> make_object_place(
    const std::string& path, const storage::Storage& storage, std::function<void()> cancel = [] {},
    HousekeepingPtr housekeeping = std::make_shared<core::Housekeeping>());

// "PLACE/checkpoints".
std::string checkpoints_of(const std::string& place);

}  // namespace scaletrain::mirror
