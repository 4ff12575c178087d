// The tensors that a pickle of torch.save names, by their path through its containers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/format/pt/pickle.h"

namespace scaletrain::format {

// A view of a storage: element [i, j, ...] of it is number first + i * strides[0] + j * strides[1]
// ... of the storage's elements.
struct PtTensor {
  std::string name;  // the keys to it joined by dots, whole numbers for the places of a list
  std::size_t top_bytes = 0;  // how long the first key is, where that is a container; otherwise 0
  std::string dtype;          // as safetensors says it
  std::vector<std::int64_t> shape, strides;  // in elements
  std::int64_t first = 0;
  std::size_t storage = 0;  // its number; tensors of one storage share their bytes
};

struct PtStorage {
  std::string key;         // the name of its entry below data/
  std::int64_t bytes = 0;  // as the pickle says
  std::int64_t at = 0;     // byte of the pickle that names it first
};

struct PtTensors {
  std::vector<PtTensor> tensors;  // sorted by name
  std::vector<PtStorage> storages;
};

// Follows the containers from the root; what is no tensor (numbers, texts) is left out. Throws
// core::CheckpointError naming pickle.place, the tensor and the rule: a view that reaches beyond
// its storage, a name that is there twice, containers that hold themselves, views that make more
// than 64 MB of a byte (expanded tensors).
PtTensors find_pt_tensors(const Pickle& pickle);

// How many bytes the tensor has, once it is contiguous.
std::int64_t pt_tensor_bytes(const PtTensor& tensor);

}  // namespace scaletrain::format
