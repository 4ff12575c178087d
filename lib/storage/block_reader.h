// Reads a remote object in large pieces and keeps the last few: for callers that make small reads,
// mostly from front to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lib/storage/storage.h"

namespace scaletrain::storage {

class BlockReader {
 public:
  // Keeps `kept` pieces, at least two. `object` must outlive this object.
  explicit BlockReader(const Object& object, std::size_t kept = 2,
                       std::int64_t piece_bytes = 8 << 20);
  ~BlockReader();  // waits for the piece that is being prefetched
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // Reads like Object::read(); any thread. A piece is requested once while it is kept; after two
  // consecutive pieces the next one is prefetched.
  void read(std::int64_t offset, std::span<std::byte> out) const;

 private:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct Piece {
    std::int64_t number = 0;
    std::shared_future<Bytes> bytes;
  };

  Bytes get(std::int64_t number) const;
  std::shared_future<Bytes> fetch(std::int64_t number) const;

  const Object& object_;
  std::size_t kept_;
  std::int64_t bytes_, piece_bytes_;
  mutable std::mutex mutex_;
  mutable std::deque<Piece> pieces_;  // in the order of the requests
};

}  // namespace scaletrain::storage
