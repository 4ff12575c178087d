// A disk that beats with everything that is done on it: a save may take long, and is no hang while
// bytes are written.
#pragma once

#include <utility>

#include "lib/core/beat.h"
#include "lib/core/disk.h"

namespace scaletrain::train {

class BeatingDisk : public core::Disk {
 public:
  BeatingDisk(core::Disk& disk, core::Beat beat) : disk_(disk), beat_(std::move(beat)) {}

  std::unique_ptr<core::DiskFile> create(const std::filesystem::path& path,
                                         std::int64_t expected_bytes) override;
  void make_folders(const std::filesystem::path& path) override { beaten().make_folders(path); }
  void sync_folder(const std::filesystem::path& path) override { beaten().sync_folder(path); }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    beaten().rename(from, to);
  }
  void make_link(const std::filesystem::path& target, const std::filesystem::path& link) override {
    beaten().make_link(target, link);
  }
  void remove_all(const std::filesystem::path& path) override { beaten().remove_all(path); }
  std::int64_t free_bytes(const std::filesystem::path& path) override {
    return beaten().free_bytes(path);
  }

 private:
  core::Disk& beaten() {
    beat_.enter(core::Phase::kSaving);
    return disk_;
  }

  core::Disk& disk_;
  core::Beat beat_;
};

}  // namespace scaletrain::train
