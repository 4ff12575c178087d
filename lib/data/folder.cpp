#include "lib/data/folder.h"

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/format/tar_samples.h"
#include "lib/storage/storage.h"

namespace scaletrain::data {
namespace {

constexpr const char* kLayout = "a folder source holds one folder of images for each class";

// The part after the last dot, lower-case; "" for a name without.
std::string extension_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return "";
  std::string extension = name.substr(dot + 1);
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

std::vector<std::string> list_images(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : storage::file_storage().list(folder)) {
    if (entry.name.starts_with('.')) continue;
    if (entry.folder) {
      throw core::DataError(folder + "/" + entry.name, "a folder inside a class's folder", kLayout);
    }
    if (format::is_image_extension(extension_of(entry.name))) files.push_back(entry.name);
  }
  if (files.empty())
    throw core::DataError(folder, "no .jpg, .jpeg, .png, .webp or .rgb8 in it", kLayout);
  return files;
}

class FolderDataset : public Dataset {
 public:
  explicit FolderDataset(std::string path) : path_(std::move(path)) {
    for (const auto& entry : storage::file_storage().list(path_)) {
      if (!entry.folder || entry.name.starts_with('.')) continue;
      files_.push_back(list_images(path_ + "/" + entry.name));
      classes_.push_back(entry.name);
      size_ += static_cast<std::int64_t>(files_.back().size());
    }
    if (classes_.empty()) throw core::DataError(path_, "no class folder in it", kLayout);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t shard_count() const override { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t shard_size(std::int64_t shard) const override {
    return static_cast<std::int64_t>(files_[static_cast<std::size_t>(shard)].size());
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t label(std::int64_t shard, std::int64_t /*sample*/) const override { return shard; }

  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override {
    raw.label = shard;
    raw.shard = classes_[static_cast<std::size_t>(shard)];
    raw.key = files_[static_cast<std::size_t>(shard)][static_cast<std::size_t>(sample)];
    raw.extension = extension_of(raw.key);
    raw.image =
        core::read_file(image_place(shard, raw), format::kMaxMemberBytes, core::ExitCode::kData);
  }

  std::string image_place(std::int64_t shard, const RawSample& sample) const override {
    return label_place(shard, sample) + "/" + sample.key;
  }
  std::string label_place(std::int64_t shard, const RawSample& /*sample*/) const override {
    return path_ + "/" + classes_[static_cast<std::size_t>(shard)];
  }

 private:
  std::string path_;
  std::vector<std::string> classes_;
  std::vector<std::vector<std::string>> files_;  // by class
  std::int64_t size_ = 0;
};

}  // namespace

std::shared_ptr<const Dataset> open_folder(const std::string& path) {
  return std::make_shared<FolderDataset>(path);
}

}  // namespace scaletrain::data
