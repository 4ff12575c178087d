// Blocks of memory that return to the pool they came from.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace scaletrain::core {

// A block; returns to its pool when destroyed, from any thread.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::span<std::byte> bytes, std::function<void(std::span<std::byte>)> give_back)
      : bytes_(bytes), give_back_(std::move(give_back)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Buffer() {
    if (give_back_) give_back_(bytes_);
  }

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(give_back_, other.give_back_);
  }

  std::span<std::byte> bytes_;
  std::function<void(std::span<std::byte>)> give_back_;
};

class BufferPool {
 public:
  virtual ~BufferPool() = default;
  // A block of at least `bytes`, aligned to 64; from any thread.
  virtual Buffer take(std::size_t bytes) = 0;
};

// Ordinary memory, freed blocks kept for reuse. The pool must outlive its buffers.
std::unique_ptr<BufferPool> make_host_pool();

}  // namespace scaletrain::core
