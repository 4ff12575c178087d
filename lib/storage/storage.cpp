#include "lib/storage/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/url.h"

namespace scaletrain::storage {
namespace {

// Large enough for full speed with a remote server, small enough to be requested again.
constexpr std::int64_t kPieceBytes = 8 << 20;

class ObjectStream : public Stream {
 public:
  explicit ObjectStream(std::unique_ptr<const Object> object)
      : object_(std::move(object)), end_(object_->identity().bytes) {}

  std::size_t read(std::span<std::byte> out) override {
    if (used_ == piece_.size()) {
      piece_.resize(static_cast<std::size_t>(std::min(kPieceBytes, end_ - offset_)));
      object_->read(offset_, piece_);
      offset_ += static_cast<std::int64_t>(piece_.size());
      used_ = 0;
    }
    const std::size_t bytes = std::min(out.size(), piece_.size() - used_);
    if (bytes > 0) std::memcpy(out.data(), piece_.data() + used_, bytes);
    used_ += bytes;
    return bytes;
  }

 private:
  std::unique_ptr<const Object> object_;
  std::int64_t end_;
  std::int64_t offset_ = 0;  // offset of the bytes after the piece
  std::vector<std::byte> piece_;
  std::size_t used_ = 0;  // bytes of the piece already returned
};

}  // namespace

std::unique_ptr<Stream> Storage::stream(const std::string& path) const {
  return stream_of(open(path));
}

void Storage::upload(const std::string& path, const Source& /*source*/) const {
  throw core::StorageError(core::shown_path(path), "nothing can be uploaded there",
                           "use s3:// or a folder");
}

void Storage::remove(const std::string& path) const {
  throw core::StorageError(core::shown_path(path), "nothing can be removed there",
                           "use s3:// or a folder");
}

void Storage::remove_unfinished(const std::string& /*folder*/) const {}

std::unique_ptr<Stream> stream_of(std::unique_ptr<const Object> object) {
  return std::make_unique<ObjectStream>(std::move(object));
}

std::unique_ptr<Object> open_if_there(const Storage& storage, const std::string& path) {
  try {
    return storage.open(path);
  } catch (const AbsentError&) {
    return nullptr;
  } catch (const ForbiddenError&) {  // S3 answers so for missing objects if listing is forbidden
    return nullptr;
  }
}

std::optional<std::string> read_if_there(const Storage& storage, const std::string& path,
                                         std::int64_t max_bytes) {
  const std::unique_ptr<Object> object = open_if_there(storage, path);
  if (object == nullptr) return std::nullopt;
  const std::int64_t bytes = object->identity().bytes;
  if (bytes > max_bytes) {
    throw core::DataError(core::shown_path(path), fmt::format("has {} bytes", bytes),
                          fmt::format("at most {} bytes are read here", max_bytes));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  const std::span<std::byte> out = std::as_writable_bytes(std::span(text));
  if (object->has_ranges()) {
    object->read(0, out);
    return text;
  }
  const std::unique_ptr<Stream> stream = storage.stream(path);
  for (std::size_t done = 0; done < out.size();) done += stream->read(out.subspan(done));
  return text;
}

}  // namespace scaletrain::storage
