// Files of checkpoints in this process's memory, for other nodes: of the newest save that is whole
// and of one more, the one under way or the one before.
//
// A save is known by a name that the ranks that write it have in common. It is whole when its
// manifest is there, which is put last, by who knows that all files are where they belong. The
// files are memory without a name in any folder: they are gone with the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"

namespace scaletrain::replica {

// A file in memory. It is filled by one thread, then read by any.
class HeldFile {
 public:
  // Counts its bytes in `held`, of which there may be `most`.
  HeldFile(std::shared_ptr<std::atomic<std::int64_t>> held, std::int64_t most);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  // Throws core::OutOfMemoryError where there would be more than the most, or none is left.
  void append(std::span<const std::byte> bytes);
  // Copies the `into.size()` bytes from `begin` on, which must exist.
  void read(std::int64_t begin, std::span<std::byte> into) const;
  std::int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> held_;
  std::int64_t most_;
  core::Descriptor memory_;
  std::int64_t bytes_ = 0;
};

// Files of one save that this node holds.
struct HeldSave {
  std::string name;
  std::int64_t step = 0;
  std::string manifest = {};                       // "": it is not whole
  std::string seal = {};                           // seal of the manifest (lib/replica/secret.h)
  std::map<std::string, std::int64_t> files = {};  // their bytes
};

// Any thread may call anything.
class Shelf {
 public:
  // Holds at most so many bytes.
  explicit Shelf(std::int64_t most_bytes);

  std::int64_t most_bytes() const { return most_; }
  std::int64_t held_bytes() const { return *held_; }

  // An empty file that is nowhere yet. The first of a save that is not held makes room: of all
  // others the newest whole one stays.
  std::shared_ptr<HeldFile> begin(const std::string& save, std::int64_t step);
  // It is a file of that save from now on, in place of an earlier one. One whose save is not held
  // any more is dropped.
  void put(const std::string& save, const std::string& name, std::shared_ptr<const HeldFile> file);
  // The save is whole.
  void finish(const std::string& save, std::int64_t step, const std::string& manifest,
              const std::string& seal);

  // The oldest first.
  std::vector<HeldSave> list() const;
  // Null if it is not held. If two saves have that name, returns the file of the newer one.
  std::shared_ptr<const HeldFile> find(const std::string& save, const std::string& name) const;
  // A run goes on from `step`: what lies beyond is of another history.
  void forget_beyond(std::int64_t step);

 private:
  struct Save {
    HeldSave known;
    std::map<std::string, std::shared_ptr<const HeldFile>> files = {};
  };
  Save* newest(const std::string& save);
  Save& under_way(const std::string& save, std::int64_t step);

  const std::int64_t most_;
  const std::shared_ptr<std::atomic<std::int64_t>> held_;
  mutable std::mutex mutex_;
  std::list<Save> saves_;  // the oldest first
};

}  // namespace scaletrain::replica
