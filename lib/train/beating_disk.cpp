#include "lib/train/beating_disk.h"

namespace scaletrain::train {
namespace {

class BeatingFile : public core::DiskFile {
 public:
  BeatingFile(std::unique_ptr<core::DiskFile> file, core::Beat beat)
      : file_(std::move(file)), beat_(std::move(beat)) {}

  void write(std::span<const std::byte> bytes) override {
    beat_.enter(core::Phase::kSaving);
    file_->write(bytes);
  }
  void sync() override {
    beat_.enter(core::Phase::kSaving);
    file_->sync();
  }

 private:
  std::unique_ptr<core::DiskFile> file_;
  core::Beat beat_;
};

}  // namespace

std::unique_ptr<core::DiskFile> BeatingDisk::create(const std::filesystem::path& path,
                                                    std::int64_t expected_bytes) {
  return std::make_unique<BeatingFile>(beaten().create(path, expected_bytes), beat_);
}

}  // namespace scaletrain::train
