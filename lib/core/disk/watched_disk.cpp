#include "lib/core/disk/watched_disk.h"

namespace scaletrain::core {
namespace {

class WatchedFile : public DiskFile {
 public:
  WatchedFile(std::unique_ptr<DiskFile> file, std::function<void()> watch)
      : file_(std::move(file)), watch_(std::move(watch)) {}

  void write(std::span<const std::byte> bytes) override {
    watch_();
    file_->write(bytes);
  }
  void write_lasting(std::span<const std::byte> bytes) override {
    watch_();
    file_->write_lasting(bytes);
  }
  void sync() override {
    watch_();
    file_->sync();
  }

 private:
  std::unique_ptr<DiskFile> file_;
  std::function<void()> watch_;
};

}  // namespace

std::unique_ptr<DiskFile> WatchedDisk::create(const std::filesystem::path& path,
                                              std::int64_t expected_bytes) {
  return std::make_unique<WatchedFile>(watched().create(path, expected_bytes), watch_);
}

}  // namespace scaletrain::core
