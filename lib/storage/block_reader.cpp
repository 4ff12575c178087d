#include "lib/storage/block_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace scaletrain::storage {

BlockReader::BlockReader(const Object& object, std::size_t kept, std::int64_t piece_bytes)
    : object_(object), kept_(kept), bytes_(object.identity().bytes), piece_bytes_(piece_bytes) {}

BlockReader::~BlockReader() = default;

void BlockReader::read(std::int64_t offset, std::span<std::byte> out) const {
  const std::int64_t end = offset + static_cast<std::int64_t>(out.size());
  if (offset < 0 || end > bytes_) return object_.read(offset, out);  // read() reports the error
  while (!out.empty()) {
    const std::int64_t number = offset / piece_bytes_;
    const Bytes piece = get(number);
    const auto at = static_cast<std::size_t>(offset - number * piece_bytes_);
    const std::size_t count = std::min(out.size(), piece->size() - at);
    std::memcpy(out.data(), piece->data() + at, count);
    out = out.subspan(count);
    offset += static_cast<std::int64_t>(count);
  }
}

BlockReader::Bytes BlockReader::get(std::int64_t number) const {
  std::shared_future<Bytes> bytes;
  std::vector<Piece> old;  // let go without the lock
  {
    const std::lock_guard lock(mutex_);
    const auto is_kept = [&](std::int64_t wanted) {
      return std::any_of(pieces_.begin(), pieces_.end(),
                         [&](const Piece& piece) { return piece.number == wanted; });
    };
    if (!is_kept(number)) pieces_.push_back({number, fetch(number)});
    if (is_kept(number - 1) && !is_kept(number + 1) && (number + 1) * piece_bytes_ < bytes_) {
      pieces_.push_back({number + 1, fetch(number + 1)});
    }
    bytes = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
              return piece.number == number;
            })->bytes;
    while (pieces_.size() > kept_) {
      old.push_back(std::move(pieces_.front()));
      pieces_.pop_front();
    }
  }
  return bytes.get();
}

std::shared_future<BlockReader::Bytes> BlockReader::fetch(std::int64_t number) const {
  return std::async(std::launch::async,
                    [this, number]() -> Bytes {
                      const std::int64_t begin = number * piece_bytes_;
                      auto piece = std::make_shared<std::vector<std::byte>>(
                          static_cast<std::size_t>(std::min(piece_bytes_, bytes_ - begin)));
                      object_.read(begin, *piece);
                      return piece;
                    })
      .share();
}

}  // namespace scaletrain::storage
