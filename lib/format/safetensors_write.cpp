#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/format/safetensors.h"

namespace scaletrain::format {
namespace {

// Text as a JSON string.
std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

// A mistake of the caller must not become a file that no one can read.
void check(const TensorBytes& tensor) {
  std::int64_t bytes = dtype_bytes(tensor.dtype);
  for (const std::int64_t dimension : tensor.shape) bytes *= dimension;
  if (dtype_bytes(tensor.dtype) == 0 || static_cast<std::size_t>(bytes) != tensor.bytes.size()) {
    throw core::InternalError(
        "write_safetensors",
        fmt::format("tensor \"{}\" of dtype {} and shape [{}] comes with {} bytes", tensor.name,
                    tensor.dtype, fmt::join(tensor.shape, ","), tensor.bytes.size()));
  }
}

std::string make_header(const std::vector<TensorBytes>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string header = "{\"__metadata__\":" + nlohmann::json(metadata).dump();
  std::size_t position = 0;
  for (const TensorBytes& tensor : tensors) {
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          json_text(tensor.name), tensor.dtype, fmt::join(tensor.shape, ","),
                          position, position + tensor.bytes.size());
    position += tensor.bytes.size();
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  return header;
}

}  // namespace

FileEntry write_safetensors(core::Disk& disk, const std::filesystem::path& path,
                            std::vector<TensorBytes> tensors,
                            const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorBytes& a, const TensorBytes& b) {
    const std::int64_t a_bytes = dtype_bytes(a.dtype), b_bytes = dtype_bytes(b.dtype);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
  });
  std::size_t data_bytes = 0;
  for (const TensorBytes& tensor : tensors) {
    check(tensor);
    data_bytes += tensor.bytes.size();
  }
  const std::string header = make_header(tensors, metadata);
  const std::uint64_t length = header.size();
  HashedFile file(disk, path,
                  static_cast<std::int64_t>(sizeof(length) + header.size() + data_bytes));
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const TensorBytes& tensor : tensors) file.write(tensor.bytes);
  return file.finish();
}

}  // namespace scaletrain::format
