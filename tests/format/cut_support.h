// Checkpoints in pieces for tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/format/checkpoint/piece_support.h"
#include "tests/format/checkpoint_support.h"

namespace scaletrain::test {

using Cut = std::function<Pieces(const Shape& shape)>;

inline Pieces in_thirds(const Shape& shape) { return cut_flat({format::whole_piece(shape)}, 3); }

// Puts files of pieces in place of `file` in `folder`, one for each number of a piece of `cut`.
inline void cut_file(const std::filesystem::path& folder, const std::string& file,
                     format::FolderFiles& written, const Cut& cut = in_thirds) {
  const format::SafetensorsFile whole(folder / file);
  std::vector<std::vector<format::TensorBytes>> files;
  std::vector<std::string> bytes;  // of all pieces
  std::vector<std::map<std::string, format::Piece>> pieces;
  std::size_t count = 0;
  for (const format::TensorInfo& tensor : whole.tensors()) count += cut(tensor.shape).size();
  bytes.reserve(count);
  for (const format::TensorInfo& tensor : whole.tensors()) {
    std::string all(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    whole.read(tensor, std::as_writable_bytes(std::span(all)));
    const auto element = static_cast<std::size_t>(format::dtype_bytes(tensor.dtype));
    const Pieces parts = cut(tensor.shape);
    if (files.size() < parts.size()) files.resize(parts.size());
    pieces.resize(files.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::string& part = bytes.emplace_back();
      for (const std::int64_t number : elements_of(parts[i], tensor.shape)) {
        part += all.substr(static_cast<std::size_t>(number) * element, element);
      }
      files[i].push_back(
          {tensor.name, tensor.dtype, {parts[i].count()}, std::as_bytes(std::span(part))});
      pieces[i][tensor.name] = parts[i];
    }
  }
  format::PieceTable& table = written.tensors[file];
  for (const format::TensorInfo& tensor : whole.tensors()) {
    table[tensor.name] = {tensor.dtype, tensor.shape, {}};
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name =
        file.substr(0, file.find('.')) + "-" + std::to_string(i) + ".safetensors";
    written.files[name] =
        format::write_safetensors(core::system_disk(), folder / name, files[i], whole.metadata());
    const format::SafetensorsFile part(folder / name);
    for (const format::TensorInfo& info : part.tensors()) {
      table[info.name].pieces.push_back({pieces[i].at(info.name), name, info.begin});
    }
  }
  std::filesystem::remove(folder / file);
  written.files.erase(file);
}

// A whole checkpoint of `contents` whose tensors are in pieces.
inline std::filesystem::path publish_cut(const std::filesystem::path& run, const Sensible& contents,
                                         std::int64_t step, const Cut& cut = in_thirds) {
  core::Disk& disk = core::system_disk();
  return format::publish_checkpoint(disk, run / "checkpoints", {.program = "test", .step = step},
                                    1000, [&](const std::filesystem::path& folder) {
                                      format::FolderFiles written = contents.write(disk, folder);
                                      cut_file(folder, "model.safetensors", written, cut);
                                      cut_file(folder, "optimizer.safetensors", written, cut);
                                      return written;
                                    });
}

}  // namespace scaletrain::test
