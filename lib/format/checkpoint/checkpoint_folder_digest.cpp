#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/core/text/hash.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/stored_tensors.h"

namespace scaletrain::format {

std::string model_digest(const std::filesystem::path& checkpoint) {
  constexpr std::int64_t kPiece = 1 << 20;
  const StoredTensors file(checkpoint / kModelFile);
  core::Sha256 hash;
  std::vector<std::byte> buffer(kPiece);
  for (const TensorInfo& tensor : file.tensors()) {
    hash.update(tensor.name + '\0' + tensor.dtype + '\0' +
                fmt::format("{}", fmt::join(tensor.shape, ",")) + '\0');
    const std::int64_t bytes = tensor.end - tensor.begin;
    for (std::int64_t offset = 0; offset < bytes; offset += kPiece) {
      const auto piece =
          std::span(buffer).first(static_cast<std::size_t>(std::min(kPiece, bytes - offset)));
      file.read(tensor, piece, offset);
      hash.update(piece);
    }
  }
  return hash.hex();
}

}  // namespace scaletrain::format
