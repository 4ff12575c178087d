// Peer-checkpoint store: checkpoint files of other nodes in this process's memory, of the newest
// complete save and of one more, either a running or an older one.
//
// All writing ranks use the same name for a save. A save is complete when its manifest has arrived,
// which is sent last, once all files are stored. The files are anonymous memory: they vanish with
// the process.
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

// A file in memory, written by one thread, then read by any.
class HeldFile {
 public:
  // Adds its size to `held`, whose limit is `most`.
  HeldFile(std::shared_ptr<std::atomic<std::int64_t>> held, std::int64_t most);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  // Throws core::OutOfMemoryError beyond the limit, or if the system has no memory.
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
  std::string manifest = {};                       // "": the save is not complete
  std::string seal = {};                           // seal of the manifest (lib/replica/secret.h)
  std::map<std::string, std::int64_t> files = {};  // size of each file
};

// All functions may be called from any thread.
class Shelf {
 public:
  // `most_bytes`: limit of all files together.
  explicit Shelf(std::int64_t most_bytes);

  std::int64_t most_bytes() const { return most_; }
  std::int64_t held_bytes() const { return *held_; }

  // Creates an empty file that belongs to no save yet. The first file of a new save makes room: of
  // the other saves only the newest complete one stays.
  std::shared_ptr<HeldFile> begin(const std::string& save, std::int64_t step);
  // Adds or replaces a file of a save; ignored if the save was removed.
  void put(const std::string& save, const std::string& name, std::shared_ptr<const HeldFile> file);
  // Marks the save as complete.
  void finish(const std::string& save, std::int64_t step, const std::string& manifest,
              const std::string& seal);

  // Returns all saves, oldest first.
  std::vector<HeldSave> list() const;
  // Returns the file, or null if it is not stored. If two saves have that name, returns the file of
  // the newer one.
  std::shared_ptr<const HeldFile> find(const std::string& save, const std::string& name) const;
  // Removes saves after `step`, from which a run resumes: they belong to an abandoned history.
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
