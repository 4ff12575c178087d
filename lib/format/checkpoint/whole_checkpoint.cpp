#include "lib/format/checkpoint/whole_checkpoint.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

// Calls `body(offset, bytes)` for `bytes` bytes in blocks, which end between any two elements.
template <class Body>
void in_blocks(std::int64_t bytes, const Body& body) {
  constexpr std::int64_t kBlock = 1 << 20;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kBlock, bytes)));
  for (std::int64_t offset = 0; offset < bytes; offset += kBlock) {
    body(offset,
         std::span(buffer).first(static_cast<std::size_t>(std::min(kBlock, bytes - offset))));
  }
}

FileEntry copy_file(core::Disk& disk, const fs::path& from, const fs::path& to, Sum kind) {
  const ByteReader reader(from);
  HashedFile file(disk, to, reader.bytes(), kind);
  in_blocks(reader.bytes(), [&](std::int64_t offset, std::span<std::byte> block) {
    reader.read(offset, block);
    file.write(block);
  });
  return file.finish();
}

FileEntry join_pieces(core::Disk& disk, const fs::path& from, const fs::path& to) {
  const StoredTensors stored(from);
  return write_safetensors(disk, to, stored.tensors(), stored.metadata(),
                           [&](const TensorInfo& tensor, HashedFile& file) {
                             in_blocks(tensor.end - tensor.begin,
                                       [&](std::int64_t offset, std::span<std::byte> block) {
                                         stored.read(tensor, block, offset);
                                         file.write(block);
                                       });
                           });
}

}  // namespace

void write_whole(core::Disk& disk, const fs::path& checkpoint, const fs::path& folder) {
  Manifest manifest = read_manifest(checkpoint);
  for (const std::string& name : piece_files(manifest)) manifest.files.erase(name);
  for (auto& [name, entry] : manifest.files) {
    const fs::path from = checkpoint / name;
    require_sum(from.string(), copy_file(disk, from, folder / name, entry.kind), entry);
  }
  for (const auto& [name, table] : std::exchange(manifest.tensors, {})) {
    manifest.files[name] = join_pieces(disk, checkpoint / name, folder / name);
  }
  write_hashed(disk, folder / kManifestName, render_manifest(manifest));
  disk.sync_folder(folder);
}

}  // namespace scaletrain::format
