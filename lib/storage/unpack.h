// Decompresses streams with libarchive; the only place where scaletrain decompresses files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/storage/storage.h"

namespace scaletrain::storage {

inline constexpr std::int64_t kMaxUnpackedBytes = std::int64_t{16} << 30;  // above any shard

enum class Packing {
  kGzipOrZstd,  // formats of compressed shards
  kAnyOrNone,   // formats accepted for import: also xz, bzip2 and uncompressed
};

struct UnpackLimit {
  std::int64_t bytes = 0;
  std::string remedy = {};  // advice in the error if the limit is exceeded
};

// Decompresses `packed`, which messages call `place`, in constant memory. The call and read() throw
// core::DataError for another compression, damaged or truncated data, or more than `most` bytes,
// and the errors of `packed`, which must outlive the result.
std::unique_ptr<Stream> unpack(Stream& packed, std::string place, UnpackLimit most,
                               Packing packing = Packing::kGzipOrZstd);

// True if a file that begins with `packed` is compressed in a format that unpack() knows.
bool is_packed(Stream& packed, std::string place);

}  // namespace scaletrain::storage
