// Compressed streams, read by libarchive: the one place where scaletrain decompresses files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/storage/storage.h"

namespace scaletrain::storage {

inline constexpr std::int64_t kMaxUnpackedBytes = std::int64_t{16} << 30;  // above any shard

enum class Packing {
  kGzipOrZstd,  // of shards
  kAnyOrNone,   // of what is imported: xz and bzip2 too, and what is not compressed
};

struct UnpackLimit {
  std::int64_t bytes = 0;
  std::string remedy = {};  // what to do about more
};

// What `packed` holds. `place` stands for it in messages. Memory does not grow with the stream. The
// call and read() throw core::DataError for what is packed in another way, damaged or cut, and for
// more than `most`; and whatever `packed` throws. `packed` must outlive the result.
std::unique_ptr<Stream> unpack(Stream& packed, std::string place, UnpackLimit most,
                               Packing packing = Packing::kGzipOrZstd);

// Whether a file that begins with `packed` is compressed, in whatever way unpack() knows.
bool is_packed(Stream& packed, std::string place);

}  // namespace scaletrain::storage
