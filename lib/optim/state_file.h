// An optimizer's state in a file on a disk (Rajbhandari et al., ZeRO-Infinity, 2021, section 5.2).
//
// While parameters are updated three portions of the state are in memory: one that is used, the
// next one, which is read, and the one before, which is written. Otherwise its tensors are a
// mapping of the file: who saves them reads from the disk, who restores them writes to it, through
// the page cache, and neither needs memory for all of it. The file has no name, so that nothing is
// left of it when the process ends in whatever way.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "lib/core/disk/async_file.h"

namespace scaletrain::optim {

class StateFile {
 public:
  // Makes the folder where it is not there. Throws core::StorageError where that, or a file in it,
  // cannot be.
  explicit StateFile(const std::filesystem::path& folder,
                     core::AsyncFile::Way way = core::AsyncFile::Way::kAuto);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // Adds a portion: the memory of `tensors`, contiguous ones of the host's, is in the file from
  // here on, as long as this lives; but for what is smaller than a page, which stays. Throws
  // core::StorageError, with the bytes, where there is no room.
  void add(const std::vector<at::Tensor>& tensors);

  // A step takes the portions one by one: fetch() begins to read one, which may be the one behind
  // that which is used; enter() waits until it is there, and leave() begins to write it back. All
  // throw core::StorageError, of what was begun before too.
  void fetch(std::size_t portion);
  void enter(std::size_t portion);
  void leave(std::size_t portion);
  // Waits until all is written: before tensors are used outside of a step.
  void finish();

  std::int64_t bytes() const { return end_; }
  bool has_ring() const { return file_->has_ring(); }

 private:
  struct Region {
    c10::Storage storage;
    std::size_t place, bytes;  // in its portion
  };
  struct Portion {
    std::vector<Region> regions;
    std::int64_t place = 0;  // in the file
    std::size_t bytes = 0;
    std::byte* mapping = nullptr;
    std::size_t buffer = 0;
    std::uint64_t reading = 0, writing = 0;  // operations on the file; 0: none
  };
  struct Buffer {
    at::DataPtr memory;
    std::byte* begin = nullptr;  // page-aligned
    std::size_t bytes = 0;
    std::uint64_t last = 0;  // last operation begun with it
  };
  static constexpr std::size_t kBuffers = 3;

  std::span<std::byte> take_buffer(Portion& portion);
  static void place_at(const Portion& portion, std::byte* memory);
  void reserve(std::size_t bytes) const;

  std::filesystem::path path_;  // for errors
  int fd_ = -1;                 // the file's
  std::unique_ptr<core::AsyncFile> file_;
  std::vector<Portion> portions_;
  std::array<Buffer, kBuffers> buffers_;
  std::size_t next_buffer_ = 0;
  std::int64_t end_ = 0;  // end of the file
};

}  // namespace scaletrain::optim
