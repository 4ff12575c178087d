#include "lib/storage/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::storage {
namespace {

constexpr std::size_t kPackedBytes = 1 << 18;

class UnpackedStream : public Stream {
 public:
  UnpackedStream(Stream& packed, std::string place, UnpackLimit most, Packing packing)
      : packed_(packed),
        place_(std::move(place)),
        most_(std::move(most)),
        buffer_(kPackedBytes),
        archive_(archive_read_new(), archive_read_free) {
    // Not all that libarchive has: for some it runs other programs.
    archive_read_support_filter_gzip(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    if (packing == Packing::kAnyOrNone) {
      archive_read_support_filter_xz(archive_.get());
      archive_read_support_filter_bzip2(archive_.get());
    }
    archive_read_support_format_raw(archive_.get());  // one file of any bytes
    archive_read_support_format_empty(archive_.get());
    check(archive_read_open(archive_.get(), this, nullptr, more, nullptr));
    is_packed_ = archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_NONE;
    if (!is_packed_ && packing == Packing::kGzipOrZstd) {
      core::refuse_placeholder(place_, {reinterpret_cast<const char*>(buffer_.data()), first_});
      throw core::DataError(
          place_, "is neither gzip nor zstd",
          "use the extension .tar for an uncompressed tar; otherwise copy the file again");
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
    if (got == 0) check_sum();
    bytes_ += got;
    sum_ = libdeflate_crc32(sum_, out.data(), static_cast<std::size_t>(got));
    if (bytes_ > most_.bytes) {
      throw core::DataError(place_, fmt::format("has more than {} bytes decompressed", most_.bytes),
                            most_.remedy);
    }
    return static_cast<std::size_t>(got);
  }

  bool is_packed() const { return is_packed_; }

 private:
  // Called by libarchive for the next bytes. No exception may pass through it.
  static la_ssize_t more(archive* /*reader*/, void* self, const void** bytes) {
    auto& stream = *static_cast<UnpackedStream*>(self);
    try {
      const std::size_t got = stream.packed_.read(stream.buffer_);
      if (stream.first_ == 0) stream.first_ = got;
      stream.keep_tail(std::span(stream.buffer_).first(got));
      *bytes = stream.buffer_.data();
      return static_cast<la_ssize_t>(got);
    } catch (...) {
      stream.error_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  void keep_tail(std::span<const std::byte> bytes) {
    const std::size_t newer = std::min(bytes.size(), tail_.size());
    std::memmove(tail_.data(), tail_.data() + newer, tail_.size() - newer);
    if (newer > 0)
      std::memcpy(tail_.data() + tail_.size() - newer, &bytes.back() + 1 - newer, newer);
  }

  // gzip ends with the CRC-32 and the size of its content, which libarchive does not check. If the
  // size differs, the file has several members, and only the last one's size is known here.
  void check_sum() const {
    if (archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_GZIP) return;
    std::array<std::uint32_t, 2> stored{};  // little-endian, as the machine is
    std::memcpy(stored.data(), tail_.data(), tail_.size());
    if (stored[1] == static_cast<std::uint32_t>(bytes_) && stored[0] != sum_) {
      fail("its checksum is wrong");
    }
  }

  void check(int status) const {
    if (status == ARCHIVE_OK) return;
    if (error_) std::rethrow_exception(error_);
    const char* const text = archive_error_string(archive_.get());
    fail(text == nullptr ? "it is damaged" : text);
  }

  [[noreturn]] void fail(const char* text) const {
    throw core::DataError(place_, fmt::format("does not decompress: {}", text),
                          "the shard is damaged or cut: copy or write it again");
  }

  Stream& packed_;
  std::string place_;
  UnpackLimit most_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::exception_ptr error_;  // error thrown by packed_
  std::size_t first_ = 0;     // bytes that the first read brought
  std::int64_t bytes_ = 0;    // so far, and their CRC-32
  std::uint32_t sum_ = 0;
  std::array<std::byte, 8> tail_{};  // last bytes read from packed_
  bool is_packed_ = false, ended_ = false;
};

}  // namespace

std::unique_ptr<Stream> unpack(Stream& packed, std::string place, UnpackLimit most,
                               Packing packing) {
  return std::make_unique<UnpackedStream>(packed, std::move(place), std::move(most), packing);
}

bool is_packed(Stream& packed, std::string place) {
  return UnpackedStream(packed, std::move(place), {}, Packing::kAnyOrNone).is_packed();
}

}  // namespace scaletrain::storage
