#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::format {
namespace {

// In a large file the first tensor begins at a page: page-aligned memory is written without a copy.
constexpr std::size_t kPage = 4096;
constexpr std::int64_t kLarge = 1 << 20;

// Text as a JSON string.
std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

// A caller's mistake must not produce an unreadable file.
void check(const TensorInfo& tensor) {
  std::int64_t bytes = dtype_bytes(tensor.dtype);
  for (const std::int64_t dimension : tensor.shape) bytes *= dimension;
  if (dtype_bytes(tensor.dtype) == 0 || bytes != tensor.end - tensor.begin) {
    throw core::InternalError(
        "write_safetensors",
        fmt::format("tensor \"{}\" of dtype {} and shape [{}] comes with {} bytes", tensor.name,
                    tensor.dtype, fmt::join(tensor.shape, ","), tensor.end - tensor.begin));
  }
}

std::string make_header(const std::vector<TensorInfo>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string header = "{\"__metadata__\":" + nlohmann::json(metadata).dump();
  std::int64_t position = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::int64_t end = position + tensor.end - tensor.begin;
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          json_text(tensor.name), tensor.dtype, fmt::join(tensor.shape, ","),
                          position, end);
    position = end;
  }
  header += '}';
  const std::size_t unit = position < kLarge ? sizeof(std::uint64_t) : kPage;
  const std::size_t begin = sizeof(std::uint64_t) + header.size();
  header.append((unit - begin % unit) % unit, ' ');
  return header;
}

}  // namespace

bool comes_before(const TensorInfo& one, const TensorInfo& other) {
  const std::int64_t bytes = dtype_bytes(one.dtype), other_bytes = dtype_bytes(other.dtype);
  return bytes != other_bytes ? bytes > other_bytes : one.name < other.name;
}

FileEntry write_safetensors(
    core::Disk& disk, const std::filesystem::path& path, std::vector<TensorInfo> tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<void(const TensorInfo& tensor, HashedFile& file)>& write_bytes) {
  std::sort(tensors.begin(), tensors.end(), comes_before);
  std::size_t data_bytes = 0;
  for (const TensorInfo& tensor : tensors) {
    check(tensor);
    data_bytes += static_cast<std::size_t>(tensor.end - tensor.begin);
  }
  const std::string header = make_header(tensors, metadata);
  const std::uint64_t length = header.size();
  HashedFile file(disk, path,
                  static_cast<std::int64_t>(sizeof(length) + header.size() + data_bytes));
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const TensorInfo& tensor : tensors) write_bytes(tensor, file);
  return file.finish();
}

FileEntry write_safetensors(core::Disk& disk, const std::filesystem::path& path,
                            std::vector<TensorBytes> tensors,
                            const std::map<std::string, std::string>& metadata) {
  std::vector<TensorInfo> described;
  std::map<std::string, std::span<const std::byte>> bytes;
  described.reserve(tensors.size());
  for (TensorBytes& tensor : tensors) {
    bytes.emplace(tensor.name, tensor.bytes);
    described.push_back({.name = std::move(tensor.name),
                         .dtype = std::move(tensor.dtype),
                         .shape = std::move(tensor.shape),
                         .begin = 0,
                         .end = std::ssize(tensor.bytes)});
  }
  return write_safetensors(disk, path, std::move(described), metadata,
                           [&](const TensorInfo& tensor, HashedFile& file) {
                             file.write_lasting(bytes.at(tensor.name));
                           });
}

}  // namespace scaletrain::format
