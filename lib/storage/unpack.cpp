#include "lib/storage/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::storage {
namespace {

constexpr std::size_t kPackedBytes = 1 << 18;

class UnpackedStream : public Stream {
 public:
  UnpackedStream(Stream& packed, std::string place, std::int64_t most_bytes)
      : packed_(packed),
        place_(std::move(place)),
        most_bytes_(most_bytes),
        buffer_(kPackedBytes),
        archive_(archive_read_new(), archive_read_free) {
    archive_read_support_filter_gzip(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    archive_read_support_format_raw(archive_.get());  // one file of any bytes
    archive_read_support_format_empty(archive_.get());
    check(archive_read_open(archive_.get(), this, nullptr, more, nullptr));
    if (archive_filter_code(archive_.get(), 0) == ARCHIVE_FILTER_NONE) {
      throw core::DataError(place_, "is neither gzip nor zstd",
                            "name a tar that is not compressed .tar; otherwise copy it again");
    }
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(archive_.get(), &entry);
    ended_ = status == ARCHIVE_EOF;
    if (!ended_) check(status);
  }

  std::size_t read(std::span<std::byte> out) override {
    if (ended_) return 0;
    const la_ssize_t got = archive_read_data(archive_.get(), out.data(), out.size());
    if (got < 0) check(static_cast<int>(got));
    bytes_ += got;
    if (bytes_ > most_bytes_) {
      throw core::DataError(place_, fmt::format("has more than {} bytes decompressed", most_bytes_),
                            "the shard is no shard, or too large: write more and smaller ones, or "
                            "give the cache more room (/data/cache/max_bytes)");
    }
    return static_cast<std::size_t>(got);
  }

 private:
  // libarchive asks for the next bytes. No exception may pass through it.
  static la_ssize_t more(archive* /*reader*/, void* self, const void** bytes) {
    auto& stream = *static_cast<UnpackedStream*>(self);
    try {
      *bytes = stream.buffer_.data();
      return static_cast<la_ssize_t>(stream.packed_.read(stream.buffer_));
    } catch (...) {
      stream.error_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  void check(int status) const {
    if (status == ARCHIVE_OK) return;
    if (error_) std::rethrow_exception(error_);
    const char* const text = archive_error_string(archive_.get());
    throw core::DataError(
        place_, fmt::format("does not decompress: {}", text == nullptr ? "it is damaged" : text),
        "the shard is damaged or cut: copy or write it again");
  }

  Stream& packed_;
  std::string place_;
  std::int64_t most_bytes_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::exception_ptr error_;  // of packed_
  std::int64_t bytes_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Stream> unpack(Stream& packed, std::string place, std::int64_t most_bytes) {
  return std::make_unique<UnpackedStream>(packed, std::move(place), most_bytes);
}

}  // namespace scaletrain::storage
