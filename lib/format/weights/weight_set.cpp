#include "lib/format/weights/weight_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"

namespace scaletrain::format {
namespace {

constexpr const char* kWholeModel =
    "put all files of the model into one folder, with their original names";

bool is_before(const WeightTensor& a, const WeightTensor& b) { return a.name < b.name; }

}  // namespace

WeightSet::WeightSet(const std::filesystem::path& path, const std::string& part,
                     const std::function<void(const std::string&)>& report)
    : files_(find_weight_files(path, report)) {
  opened_.reserve(files_.files.size());
  for (const std::filesystem::path& file : files_.files) {
    const WeightFile& opened = *opened_.emplace_back(open_weight_file(file, part));
    tensors_.insert(tensors_.end(), opened.tensors().begin(), opened.tensors().end());
  }
  part_ = opened_.front()->part();
  std::sort(tensors_.begin(), tensors_.end(), is_before);
  const auto twice = std::adjacent_find(
      tensors_.begin(), tensors_.end(),
      [](const WeightTensor& a, const WeightTensor& b) { return a.name == b.name; });
  if (twice != tensors_.end()) {
    throw core::CheckpointError(
        path.string(),
        fmt::format("has the tensor \"{}\" in {} and in {}", core::printable(twice->name),
                    twice->file.filename().string(), std::next(twice)->file.filename().string()),
        kWholeModel);
  }
  check_index();
  join_scales();
}

void WeightSet::join_scales() {
  std::set<std::string> joined;  // names of scales
  for (const WeightTensor& tensor : tensors_) {
    const WeightTensor* const scales = find(scale_name(tensor.name));
    if (scales == nullptr || !ScaledTensor::fits(tensor, *scales)) continue;
    scaled_.emplace(tensor.name, ScaledTensor(tensor, *scales));
    joined.insert(scales->name);
  }
  std::erase_if(tensors_, [&](const WeightTensor& tensor) { return joined.contains(tensor.name); });
  for (WeightTensor& tensor : tensors_) {
    const auto found = scaled_.find(tensor.name);
    if (found != scaled_.end()) tensor = found->second.described();
  }
}

// A tensor that the index does not name is taken, as by Hugging Face.
void WeightSet::check_index() const {
  for (const auto& [name, file] : files_.file_of) {
    const WeightTensor* const tensor = find(name);
    if (tensor != nullptr && tensor->file.filename() == file) continue;
    throw core::CheckpointError(
        files_.index.string(),
        fmt::format(
            R"(says that "{}" is in "{}", where {})", core::printable(name), core::printable(file),
            tensor == nullptr
                ? std::string("it is not")
                : fmt::format("\"{}\" has it", core::printable(tensor->file.filename().string()))),
        kWholeModel);
  }
}

const WeightTensor* WeightSet::find(const std::string& name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const WeightTensor& tensor, const std::string& wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

void WeightSet::read(const WeightTensor& tensor, std::span<std::byte> out,
                     std::int64_t offset) const {
  const auto scaled = scaled_.find(tensor.name);
  if (scaled == scaled_.end()) return read_stored(tensor, out, offset);
  scaled->second.read(
      out, offset, [this](const WeightTensor& stored, std::span<std::byte> bytes, std::int64_t at) {
        read_stored(stored, bytes, at);
      });
}

void WeightSet::read_stored(const WeightTensor& tensor, std::span<std::byte> out,
                            std::int64_t offset) const {
  const auto file = std::find(files_.files.begin(), files_.files.end(), tensor.file);
  opened_.at(static_cast<std::size_t>(file - files_.files.begin()))->read(tensor, out, offset);
}

}  // namespace scaletrain::format
