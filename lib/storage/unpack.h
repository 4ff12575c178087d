// Compressed streams, read by libarchive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/storage/storage.h"

namespace scaletrain::storage {

// What `packed`, gzip or zstd, holds. `place` stands for it in messages. Memory does not grow with
// the stream. The call and read() throw core::DataError for what is neither, damaged or cut, and
// for more than `most_bytes`; and whatever `packed` throws. `packed` must outlive the result.
std::unique_ptr<Stream> unpack(Stream& packed, std::string place, std::int64_t most_bytes);

}  // namespace scaletrain::storage
