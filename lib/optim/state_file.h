// Optimizer state in a file on disk (Rajbhandari et al., ZeRO-Infinity, 2021, section 5.2).
//
// During an update three portions of the state are in memory: the current one, the next one, which
// is being read, and the previous one, which is being written. Otherwise the tensors are a mapping
// of the file: saving reads from the disk and restoring writes to it, through the page cache,
// without memory for all of it. The file has no name, so that it vanishes when the process ends in
// any way.
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
  // Creates the folder if it does not exist. Throws core::StorageError if the folder or a file in
  // it cannot be created.
  explicit StateFile(const std::filesystem::path& folder,
                     core::AsyncFile::Way way = core::AsyncFile::Way::kAuto);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // Adds a portion: moves the memory of `tensors`, contiguous host tensors, to the file for the
  // lifetime of this object. Tensors smaller than a page stay in memory. Throws core::StorageError
  // with the size if there is no room.
  void add(const std::vector<at::Tensor>& tensors);

  // A step processes the portions one by one: fetch() starts to read one, which may be the one
  // after the current one; enter() waits for it, and leave() starts to write it back. All throw
  // core::StorageError, also for earlier operations.
  void fetch(std::size_t portion);
  void enter(std::size_t portion);
  void leave(std::size_t portion);
  // Waits until everything is written. Call before using the tensors outside a step.
  void finish();

  std::int64_t bytes() const { return end_; }
  bool has_ring() const { return file_->has_ring(); }

 private:
  struct Region {
    c10::Storage storage;
    std::size_t place, bytes;  // within its portion
  };
  struct Portion {
    std::vector<Region> regions;
    std::int64_t place = 0;  // offset in the file
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
  int fd_ = -1;                 // descriptor of the file
  std::unique_ptr<core::AsyncFile> file_;
  std::vector<Portion> portions_;
  std::array<Buffer, kBuffers> buffers_;
  std::size_t next_buffer_ = 0;
  std::int64_t end_ = 0;  // end of the file
};

}  // namespace scaletrain::optim
