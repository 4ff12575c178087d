// A disk that also sends the files of a checkpoint to the memory of other nodes while it writes
// them.
//
// If a node refuses a file, this is not a disk error: that node gets no more files of this
// checkpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/replica/peer.h"

namespace scaletrain::replica {

// Used by one thread at a time, except give_up().
class SendingDisk : public core::Disk {
 public:
  SendingDisk(core::Disk& disk, const std::vector<Address>& nodes, Patience patience = {});

  std::unique_ptr<core::DiskFile> create(const std::filesystem::path& path,
                                         std::int64_t expected_bytes) override;
  void make_folders(const std::filesystem::path& path) override { disk_.make_folders(path); }
  void sync_folder(const std::filesystem::path& path) override { disk_.sync_folder(path); }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    disk_.rename(from, to);
  }
  void make_link(const std::filesystem::path& target, const std::filesystem::path& link) override {
    disk_.make_link(target, link);
  }
  void remove_all(const std::filesystem::path& path) override { disk_.remove_all(path); }
  std::int64_t free_bytes(const std::filesystem::path& path) override {
    return disk_.free_bytes(path);
  }
  // Reads the file and sends it, since other nodes may not have the earlier one.
  void link_file(const std::filesystem::path& file, const std::filesystem::path& name) override;

  // Name of the save written last, and the reasons why nodes lack parts of it ("PLACE: WHY"), each
  // once.
  const std::string& save() const { return save_; }
  std::vector<std::string> lacks() const;

  // Ends every current and later wait for a node, from any thread.
  void give_up() { gives_up_ = true; }

 private:
  class File;
  struct Node {
    Peer peer;
    std::string lack{};  // reason why it gets no more of this save
  };
  bool enter(const std::filesystem::path& path);  // true if the file is sent to other nodes
  template <class Talk>
  void each_node(const Talk& words);

  core::Disk& disk_;
  std::atomic<bool> gives_up_ = false;
  std::list<Node> nodes_;
  std::string save_;
  std::int64_t step_ = 0;
};

}  // namespace scaletrain::replica
