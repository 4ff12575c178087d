#include "lib/data/set/listed_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/data/set/folder_files.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::data {
namespace {

namespace fs = std::filesystem;

class Files : public Dataset {
 public:
  explicit Files(std::vector<std::string> files) : files_(std::move(files)) {}

  std::int64_t size() const override { return std::ssize(files_); }
  std::int64_t shard_count() const override { return 1; }
  std::int64_t shard_size(std::int64_t /*shard*/) const override { return size(); }
  std::int64_t shard_digest(std::int64_t /*shard*/) const override {
    return digest_number(fmt::format("{}", fmt::join(files_, "\n")));
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t label(std::int64_t /*shard*/, std::int64_t /*sample*/) const override { return 0; }

  void read_into(std::int64_t /*shard*/, std::int64_t sample, RawSample& raw) const override {
    raw.label = 0;
    raw.shard = "files";
    raw.key = files_[static_cast<std::size_t>(sample)];
    const std::string extension = file_extension(raw.key);
    raw.extension = extension.empty() ? "" : extension.substr(1);
    raw.image = core::read_file(raw.key, format::kMaxMemberBytes, core::ExitCode::kData);
  }
  std::string image_place(std::int64_t /*shard*/, const RawSample& sample) const override {
    return core::printable(sample.key);
  }
  std::string label_place(std::int64_t shard, const RawSample& sample) const override {
    return image_place(shard, sample);
  }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> classes_;  // always empty
};

std::vector<std::string> images_below(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::none, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    const bool is_folder = entry->is_directory(ignored);
    if (name.starts_with('.')) {
      if (is_folder) entry.disable_recursion_pending();
    } else if (!is_folder && is_image_file(name)) {
      found.push_back(entry->path().string());
    }
  }
  if (error) {
    throw core::DataError(core::printable(folder), error.message(), "check its permissions");
  }
  if (found.empty()) {
    throw core::DataError(core::printable(folder),
                          "has no .jpg, .jpeg, .png, .webp or .rgb8 file, also in its sub-folders",
                          "name images or a folder of images");
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Returns why `path` cannot be opened as a file; "" if it can.
std::string fault_of(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return "is a folder";
  const core::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.get() >= 0 ? "" : core::errno_text(errno);
}

}  // namespace

ListedFiles list_files(const std::vector<std::string>& paths) {
  ListedFiles listed;
  const auto take = [&listed](const std::string& path) {
    std::string fault = fault_of(path);
    if (fault.empty()) {
      listed.files.push_back(path);
    } else {
      listed.unread.push_back({path, std::move(fault)});
    }
  };
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      const std::vector<std::string> images = images_below(path);
      std::for_each(images.begin(), images.end(), take);
    } else {
      take(path);
    }
  }
  return listed;
}

std::shared_ptr<const Dataset> open_files(std::vector<std::string> files) {
  return std::make_shared<Files>(std::move(files));
}

}  // namespace scaletrain::data
