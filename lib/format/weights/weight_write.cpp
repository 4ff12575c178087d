#include "lib/format/weights/weight_write.h"

#include <utility>

#include "lib/format/pt/pt_write.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::format {

OwnedTensor read_tensor(const WeightSet& set, const WeightTensor& tensor) {
  OwnedTensor owned{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .bytes = {}};
  owned.bytes.resize(static_cast<std::size_t>(tensor.bytes));
  set.read(tensor, owned.bytes);
  return owned;
}

bool is_pytorch_name(const std::filesystem::path& path) {
  return path.extension() == ".pt" || path.extension() == ".pth" || path.extension() == ".bin";
}

void write_weights(core::Disk& disk, const std::filesystem::path& path, bool as_pt,
                   const std::vector<OwnedTensor>& tensors) {
  if (as_pt) {
    PtWriter writer(disk, path);
    for (const OwnedTensor& tensor : tensors) {
      writer.add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes);
    }
    writer.finish();
    return;
  }
  std::vector<TensorBytes> described;
  described.reserve(tensors.size());
  for (const OwnedTensor& tensor : tensors) {
    described.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  write_safetensors(disk, path, std::move(described), {{"format", "pt"}});
}

}  // namespace scaletrain::format
