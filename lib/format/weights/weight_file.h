// Reads the named tensors of a weight file: safetensors or torch.save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace scaletrain::format {

struct WeightTensor {
  std::string name;
  std::string dtype;  // as safetensors says it
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;  // contiguous
  std::filesystem::path file;
  std::size_t number = 0;  // in its file
};

// Selected part of a torch.save file (lib/format/pt/pt_part.h); empty for safetensors.
struct WeightPart {
  std::string name;                 // "state_dict"
  std::string stripped;             // "module."
  std::vector<std::string> others;  // keys with tensors that are not used
};

class WeightFile {
 public:
  virtual ~WeightFile() = default;

  virtual const std::vector<WeightTensor>& tensors() const = 0;  // sorted by name
  virtual WeightPart part() const = 0;

  // Reads bytes of a tensor, from byte `offset` on, until `out` is full; both are multiples of the
  // element size. One caller at a time.
  virtual void read(const WeightTensor& tensor, std::span<std::byte> out,
                    std::int64_t offset) const = 0;
};

// Opens the file at `path`, recognized by its contents. `part` selects a part of a torch.save file,
// "" the model's (choose_pt_part). Throws core::CheckpointError naming the file and the violated
// rule, and if `part` is given for a safetensors file.
std::unique_ptr<WeightFile> open_weight_file(const std::filesystem::path& path,
                                             const std::string& part);

}  // namespace scaletrain::format
