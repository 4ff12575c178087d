// Finds the tensors in a torch.save pickle, named by their path through its containers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/format/pt/pickle.h"

namespace scaletrain::format {

// A view of a storage: element [i, j, ...] is at index first + i * strides[0] + j * strides[1] +
// ... of the storage.
struct PtTensor {
  std::string name;           // path of keys joined by dots; list positions are integers
  std::size_t top_bytes = 0;  // length of the first key if that is a container; otherwise 0
  std::string dtype;          // as safetensors says it
  std::vector<std::int64_t> shape, strides;  // in elements
  std::int64_t first = 0;
  std::size_t storage = 0;  // storage number; tensors of one storage share its bytes
};

struct PtStorage {
  std::string key;         // name of its entry in data/
  std::int64_t bytes = 0;  // size in the pickle
  std::int64_t at = 0;     // byte of its first mention in the pickle
};

struct PtTensors {
  std::vector<PtTensor> tensors;  // sorted by name
  std::vector<PtStorage> storages;
};

// Walks the containers from the root and ignores values that are not tensors. Throws
// core::CheckpointError naming pickle.place, the tensor and the rule for a view beyond its storage,
// a repeated name, containers that contain themselves, or views that would expand a byte to more
// than 64 MB (expanded tensors).
PtTensors find_pt_tensors(const Pickle& pickle);

// Returns the bytes of the tensor when contiguous.
std::int64_t pt_tensor_bytes(const PtTensor& tensor);

}  // namespace scaletrain::format
