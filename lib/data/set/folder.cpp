#include "lib/data/set/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/format/tar/tar.h"
#include "lib/storage/storage.h"

namespace scaletrain::data {
namespace {

constexpr const char* kLayout = "a folder source holds one folder of images for each class";

std::vector<std::string> list_images(const std::string& folder, LeftAlone& left_alone) {
  std::vector<std::string> files;
  for (const auto& entry : storage::file_storage().list(folder)) {
    if (entry.name.starts_with('.')) continue;
    if (entry.folder) {
      const std::string part = folder.substr(folder.rfind('/') + 1);
      const bool is_part = part == "train" || part == "val" || part == "valid" || part == "test";
      throw core::DataError(
          folder + "/" + entry.name, "a folder inside a class's folder",
          is_part ? fmt::format("name {} itself, where its folders are the classes", folder)
                  : kLayout);
    }
    if (is_image_file(entry.name)) {
      files.push_back(entry.name);
    } else {
      ++left_alone[file_extension(entry.name)];
    }
  }
  if (files.empty()) {
    throw core::DataError(
        folder, "has no .jpg, .jpeg, .png, .webp or .rgb8 file",
        std::string(kLayout) + "; scaletrain data pack makes PNGs of .bmp, .gif, .tif and .tiff");
  }
  return files;
}

class FolderDataset : public Dataset {
 public:
  FolderDataset(std::string path, LeftAlone& left_alone) : path_(std::move(path)) {
    for (const auto& entry : storage::file_storage().list(path_)) {
      if (entry.name.starts_with('.')) continue;
      if (!entry.folder) {
        ++left_alone[file_extension(entry.name)];
        continue;
      }
      check_name(entry.name);
      files_.push_back(list_images(path_ + "/" + entry.name, left_alone));
      classes_.push_back(entry.name);
      size_ += static_cast<std::int64_t>(files_.back().size());
    }
    if (classes_.empty()) throw core::DataError(path_, "has no class folder", kLayout);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t shard_count() const override { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t shard_size(std::int64_t shard) const override {
    return static_cast<std::int64_t>(files_[static_cast<std::size_t>(shard)].size());
  }
  std::int64_t shard_digest(std::int64_t shard) const override {
    const auto i = static_cast<std::size_t>(shard);
    return digest_number(fmt::format("{}\n{}", classes_[i], fmt::join(files_[i], "\n")));
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t label(std::int64_t shard, std::int64_t /*sample*/) const override { return shard; }

  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override {
    raw.label = shard;
    raw.shard = classes_[static_cast<std::size_t>(shard)];
    raw.key = files_[static_cast<std::size_t>(shard)][static_cast<std::size_t>(sample)];
    raw.extension = file_extension(raw.key).substr(1);
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
  // Class names are stored as JSON, in which names with invalid UTF-8 would become equal.
  void check_name(const std::string& name) const {
    if (core::is_utf8(name)) return;
    throw core::DataError(core::printable(path_ + "/" + format::shown_name(name)),
                          "the name of a class folder is not UTF-8",
                          "rename the folder: it is the name of a class");
  }

  std::string path_;
  std::vector<std::string> classes_;
  std::vector<std::vector<std::string>> files_;  // file names of each class
  std::int64_t size_ = 0;
};

}  // namespace

std::shared_ptr<const Dataset> open_folder(const std::string& path, LeftAlone* left_alone) {
  LeftAlone ignored;
  return std::make_shared<FolderDataset>(path, left_alone == nullptr ? ignored : *left_alone);
}

}  // namespace scaletrain::data
