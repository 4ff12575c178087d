// All the shards that a command is given, and the sound samples in them.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/in_order.h"
#include "app/data/files/shard_files.h"
#include "lib/data/set/quarantine_lists.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {

// Opens each shard once, to fail at the start where one is missing; later one at a time, of the
// same version. `stores` must outlive it.
class ShardSet {
 public:
  ShardSet(const storage::Stores& stores, std::vector<std::string> paths);

  std::size_t size() const { return paths_.size(); }
  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& path(std::size_t shard) const { return paths_[shard]; }
  const storage::Stores& stores() const { return stores_; }

  // Throws core::DataError for a shard that was changed in the meantime.
  std::unique_ptr<ShardFile> open(std::size_t shard) const;

  bool leaves_out(std::size_t shard) const { return quarantine_.holds_shard(paths_[shard]); }
  std::vector<std::string> left_out_keys(std::size_t shard) const {
    return quarantine_.keys_of(paths_[shard]);
  }

 private:
  const storage::Stores& stores_;
  std::vector<std::string> paths_;
  data::QuarantineLists quarantine_;
  std::vector<storage::Identity> identities_;
};

// One sound sample, and where it is.
struct FoundSample {
  std::uint32_t number = 0;  // in the whole set
  std::uint32_t shard = 0;
  // The class; of a list of classes 2^31 or more, the same for the same list.
  std::uint32_t label = 0;
  format::TarGroup group;
  std::vector<std::int64_t> labels;  // the classes: one, or those of the list
};

using UseBatch = std::function<void(const ShardFile&, const std::vector<FoundSample>&)>;

// Every sample of one shard, a few megabytes at a time; the first gets the number `first`, and what
// comes back is the number after the last. Throws core::DataError for the first that is not whole
// or whose key the shard had before; what quarantine.json beside the shard names is left out.
std::uint32_t for_each_batch_of(const ShardSet& set, std::size_t shard, std::uint32_t first,
                                const UseBatch& use);

// Does so for every shard; `after` is called when a shard is done.
void for_each_batch(const ShardSet& set, const UseBatch& use, const std::function<void()>& after);

// Bytes from the first byte of the first sample to the last byte of the last one.
std::int64_t bytes_of(const std::vector<FoundSample>& batch);

// Calls use(sample, make(shard, sample, thread)) for every sample in order; `make` runs in several
// threads, as in_order() has it. Memory does not grow with the number of samples. A bar with
// `label` shows how many shards are done.
template <class T>
void for_each_sample(
    const ShardSet& set, const std::string& label, int threads,
    const std::function<T(const ShardFile& shard, const FoundSample& sample, int thread)>& make,
    const std::function<void(const FoundSample& sample, T made)>& use) {
  observe::WorkProgress progress(STDERR_FILENO, label, static_cast<std::int64_t>(set.size()));
  for_each_batch(
      set,
      [&](const ShardFile& shard, const std::vector<FoundSample>& batch) {
        in_order<T>(
            std::ssize(batch), threads,
            [&](std::int64_t i, int thread) {
              return make(shard, batch[static_cast<std::size_t>(i)], thread);
            },
            [&](std::int64_t i, T made) {
              use(batch[static_cast<std::size_t>(i)], std::move(made));
            });
        progress.add(0, bytes_of(batch));
      },
      [&] { progress.add(1); });
}

}  // namespace scaletrain::app
