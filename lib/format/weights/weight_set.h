// All named tensors at a path to weights, in one file or several. 8-bit quantized tensors appear as
// the weights that they stand for (lib/format/weights/scaled_tensor.h).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/format/weights/scaled_tensor.h"
#include "lib/format/weights/weight_file.h"
#include "lib/format/weights/weight_files.h"

namespace scaletrain::format {

class WeightSet {
 public:
  // Opens the files of find_weight_files(path), and `part` of each. Throws core::CheckpointError as
  // those functions do, if a tensor is in two files, or if an index lists a tensor that its file
  // does not have.
  WeightSet(const std::filesystem::path& path, const std::string& part,
            const std::function<void(const std::string&)>& report);

  const std::vector<WeightTensor>& tensors() const { return tensors_; }  // sorted by name
  const WeightFiles& files() const { return files_; }
  const WeightPart& part() const { return part_; }  // part of the first file

  // Returns the tensor of that name; nullptr if there is none.
  const WeightTensor* find(const std::string& name) const;

  // Reads bytes of a tensor like WeightFile::read().
  void read(const WeightTensor& tensor, std::span<std::byte> out, std::int64_t offset = 0) const;

 private:
  void check_index() const;
  void join_scales();
  void read_stored(const WeightTensor& tensor, std::span<std::byte> out, std::int64_t offset) const;

  WeightFiles files_;
  std::vector<std::unique_ptr<WeightFile>> opened_;  // in the order of files_.files
  std::vector<WeightTensor> tensors_;
  std::map<std::string, ScaledTensor> scaled_;  // quantized ones of tensors_, by name
  WeightPart part_;
};

}  // namespace scaletrain::format
