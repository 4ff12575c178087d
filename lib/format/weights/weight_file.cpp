#include "lib/format/weights/weight_file.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/format/pt/pt_file.h"
#include "lib/format/pt/pt_part.h"

namespace scaletrain::format {
namespace {

class SafetensorsWeights : public WeightFile {
 public:
  explicit SafetensorsWeights(const std::filesystem::path& path) : file_(path) {
    tensors_.reserve(file_.tensors().size());
    for (const TensorInfo& tensor : file_.tensors()) {
      tensors_.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.end - tensor.begin, path,
                          tensors_.size()});
    }
  }

  const std::vector<WeightTensor>& tensors() const override { return tensors_; }
  WeightPart part() const override { return {}; }
  void read(const WeightTensor& tensor, std::span<std::byte> out,
            std::int64_t offset) const override {
    file_.read(file_.tensors().at(tensor.number), out, offset);
  }

 private:
  StoredTensors file_;
  std::vector<WeightTensor> tensors_;
};

class PtWeights : public WeightFile {
 public:
  PtWeights(const std::filesystem::path& path, const std::string& part)
      : file_(path), part_(choose_pt_part(file_.tensors(), path.string(), part)) {
    tensors_.reserve(part_.tensors.size());
    for (const auto& [name, tensor] : part_.tensors) {
      tensors_.push_back(
          {name, tensor->dtype, tensor->shape, pt_tensor_bytes(*tensor), path, tensors_.size()});
    }
  }

  const std::vector<WeightTensor>& tensors() const override { return tensors_; }
  WeightPart part() const override { return {part_.name, part_.stripped, part_.others}; }
  void read(const WeightTensor& tensor, std::span<std::byte> out,
            std::int64_t offset) const override {
    file_.read(*part_.tensors.at(tensor.number).second, out, offset);
  }

 private:
  PtFile file_;
  PtPart part_;
  std::vector<WeightTensor> tensors_;
};

}  // namespace

std::unique_ptr<WeightFile> open_weight_file(const std::filesystem::path& path,
                                             const std::string& part) {
  std::error_code unknown;
  const bool is_absent =  // it may be there in pieces
      std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found;
  if (!is_absent && looks_like_pt(path)) return std::make_unique<PtWeights>(path, part);
  if (!part.empty()) {
    throw core::CheckpointError(
        path.string(),
        fmt::format("is not a file of torch.save, and has no part \"{}\"", core::printable(part)),
        "leave the part out");
  }
  return std::make_unique<SafetensorsWeights>(path);
}

}  // namespace scaletrain::format
