// A disk that reports everything that is done on it before it is done: a save may take long, and
// is no hang while bytes are written.
#pragma once

#include <functional>
#include <utility>

#include "lib/core/disk/disk.h"

namespace scaletrain::core {

class WatchedDisk : public Disk {
 public:
  // Calls `watch` before every operation, on the thread of the operation.
  WatchedDisk(Disk& disk, std::function<void()> watch) : disk_(disk), watch_(std::move(watch)) {}

  std::unique_ptr<DiskFile> create(const std::filesystem::path& path,
                                   std::int64_t expected_bytes) override;
  void make_folders(const std::filesystem::path& path) override { watched().make_folders(path); }
  void sync_folder(const std::filesystem::path& path) override { watched().sync_folder(path); }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    watched().rename(from, to);
  }
  void make_link(const std::filesystem::path& target, const std::filesystem::path& link) override {
    watched().make_link(target, link);
  }
  void remove_all(const std::filesystem::path& path) override { watched().remove_all(path); }
  std::int64_t free_bytes(const std::filesystem::path& path) override {
    return watched().free_bytes(path);
  }
  void link_file(const std::filesystem::path& file, const std::filesystem::path& name) override {
    watched().link_file(file, name);
  }

 private:
  Disk& watched() {
    watch_();
    return disk_;
  }

  Disk& disk_;
  std::function<void()> watch_;
};

}  // namespace scaletrain::core
