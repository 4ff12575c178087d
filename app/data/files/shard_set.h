// All shards of a command, and the valid samples in them.
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

// Opens each shard once, to detect missing ones at the start; later one at a time, checking that
// the version is the same. `stores` must outlive it.
class ShardSet {
 public:
  ShardSet(const storage::Stores& stores, std::vector<std::string> paths);

  std::size_t size() const { return paths_.size(); }
  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& path(std::size_t shard) const { return paths_[shard]; }
  const storage::Stores& stores() const { return stores_; }

  // Throws core::DataError for a shard that has changed meanwhile.
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

// A valid sample and its place.
struct FoundSample {
  std::uint32_t number = 0;  // in the whole set
  std::uint32_t shard = 0;
  // The class; for a list of classes a number from 2^31 on, equal for equal lists.
  std::uint32_t label = 0;
  format::TarGroup group;
  std::vector<std::int64_t> labels;  // the classes: one, or those of the list
};

using UseBatch = std::function<void(const ShardFile&, const std::vector<FoundSample>&)>;

// Passes the samples of one shard to `use`, a few megabytes at a time, numbered from `first`;
// returns the number after the last. Skips samples in quarantine.json. Throws core::DataError for
// the first incomplete sample or repeated key.
std::uint32_t for_each_batch_of(const ShardSet& set, std::size_t shard, std::uint32_t first,
                                const UseBatch& use);

// Does so for every shard; calls `after` after each.
void for_each_batch(const ShardSet& set, const UseBatch& use, const std::function<void()>& after);

// Returns the number of bytes from the first sample's start to the last sample's end.
std::int64_t bytes_of(const std::vector<FoundSample>& batch);

// Calls use(sample, make(shard, sample, thread)) for every sample in order; `make` runs in several
// threads, as in in_order(). Memory does not grow with the number of samples. Shows a progress bar
// with `label` over the shards.
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
