#include "lib/format/safetensors/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::format {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they lie in memory");

constexpr std::int64_t kLengthBytes = 8;
// The format allows 100 MB. 32 MB hold some 300,000 tensors and limit the cost of a hostile header
// to a second and 200 MB.
constexpr std::int64_t kMaxHeaderBytes = 32'000'000;

// torch.save writes a zip archive or, long ago, a bare pickle.
bool looks_like_pickle(std::span<const std::byte, kLengthBytes> start) {
  return std::memcmp(start.data(), "PK\x03\x04", 4) == 0 || start[0] == std::byte{0x80};
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  if (file_.bytes() < kLengthBytes) {
    throw core::CheckpointError(path.string(),
                                fmt::format("has {} bytes, too few for a header", file_.bytes()),
                                kSafetensorsRemedy);
  }
  std::array<std::byte, kLengthBytes> start{};
  file_.read(0, start);
  const auto length = std::bit_cast<std::uint64_t>(start);
  const std::int64_t allowed = std::min(file_.bytes() - kLengthBytes, kMaxHeaderBytes);
  if (length > static_cast<std::uint64_t>(allowed)) {
    core::refuse_placeholder_file<core::CheckpointError>(path.string());
    throw core::CheckpointError(
        path.string(),
        fmt::format("says that its header has {} bytes, where at most {} are possible", length,
                    allowed),
        looks_like_pickle(start) ? "it looks like a PyTorch pickle, which is never opened: convert "
                                   "it in Python with safetensors.torch.save_file"
                                 : kSafetensorsRemedy);
  }
  std::string text(length, '\0');
  file_.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  const std::int64_t data_begin = kLengthBytes + static_cast<std::int64_t>(length);
  SafetensorsHeader header =
      parse_safetensors_header(text, file_.bytes() - data_begin, path.string());
  for (TensorInfo& tensor : header.tensors) {
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

void SafetensorsFile::read(const TensorInfo& tensor, std::span<std::byte> out,
                           std::int64_t offset) const {
  const auto wanted = static_cast<std::int64_t>(out.size());
  if (offset < 0 || wanted > tensor.end - tensor.begin - offset) {
    throw core::InternalError("SafetensorsFile::read",
                              fmt::format("{} bytes from byte {} of tensor \"{}\", which has {}",
                                          wanted, offset, tensor.name, tensor.end - tensor.begin));
  }
  file_.read(tensor.begin + offset, out);
}

}  // namespace scaletrain::format
