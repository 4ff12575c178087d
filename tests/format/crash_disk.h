// A disk that stops after any single operation, and then forgets what was not synced.
//
// Every operation is done for real under `root` (without real syncs) and noted in a tree of nodes
// that knows what is durable: a file's bytes as of its last sync, a folder's names as of its last
// sync.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "lib/core/disk/disk.h"

namespace scaletrain::test {

// Not a core::Error: nothing may go on after it.
struct PowerCut {};

class CrashDisk : public core::Disk {
 public:
  explicit CrashDisk(std::filesystem::path root) : root_(std::move(root)) {}

  // The cut comes after `count` further operations.
  void cut_after(int count) { left_ = count; }
  // Called before each operation with its name and path; may throw core::StorageError.
  std::function<void(const std::string& operation, const std::filesystem::path& path)> before;
  std::int64_t free = std::numeric_limits<std::int64_t>::max();

  enum class Lost { kNothing, kContents, kEverything };
  // What a new start finds: kNothing: the process was killed, the machine went on. kContents: names
  // arrived on the disk, bytes of files that were not synced did not. kEverything: neither did
  // names in folders that were not synced.
  void restart(Lost lost) {
    left_ = std::numeric_limits<int>::max();
    if (lost == Lost::kNothing) return;
    std::filesystem::remove_all(root_);
    settle(*tree_, lost);
    lay_out(*tree_, root_);
  }

  std::unique_ptr<core::DiskFile> create(const std::filesystem::path& path,
                                         std::int64_t expected_bytes) override {
    begin("create", path);
    auto node = std::make_shared<Node>();
    folder_of(path).names[path.filename()] = node;
    return std::make_unique<File>(*this, path, node, system().create(path, expected_bytes));
  }
  void make_folders(const std::filesystem::path& path) override {
    if (std::filesystem::exists(path)) return;
    make_folders(path.parent_path());
    begin("make_folders", path);
    auto node = std::make_shared<Node>();
    node->kind = Node::kFolder;
    folder_of(path).names[path.filename()] = node;
    system().make_folders(path);
  }
  void sync_folder(const std::filesystem::path& path) override {
    begin("sync_folder", path);
    Node& folder = *find(path);
    folder.durable_names = folder.names;
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    begin("rename", to);
    system().rename(from, to);
    const auto node = find(from);
    folder_of(from).names.erase(from.filename());
    folder_of(to).names[to.filename()] = node;
  }
  void make_link(const std::filesystem::path& target, const std::filesystem::path& link) override {
    begin("make_link", link);
    system().make_link(target, link);
    auto node = std::make_shared<Node>();
    node->kind = Node::kLink;
    node->bytes = target.string();
    folder_of(link).names[link.filename()] = node;
  }
  // One operation for each file and folder, as a cut may come between them.
  void remove_all(const std::filesystem::path& path) override {
    if (!std::filesystem::exists(std::filesystem::symlink_status(path))) return;
    if (find(path)->kind == Node::kFolder) {
      while (!find(path)->names.empty()) remove_all(path / find(path)->names.begin()->first);
    }
    begin("remove", path);
    system().remove_all(path);
    folder_of(path).names.erase(path.filename());
  }
  std::int64_t free_bytes(const std::filesystem::path& /*path*/) override { return free; }
  void link_file(const std::filesystem::path& file, const std::filesystem::path& name) override {
    begin("link", name);
    system().link_file(file, name);
    folder_of(name).names[name.filename()] = find(file);
  }

 private:
  struct Node {
    enum Kind { kFile, kFolder, kLink } kind = kFile;
    std::string bytes, durable_bytes;  // of a link: where it points
    std::map<std::string, std::shared_ptr<Node>> names, durable_names;
  };

  class File : public core::DiskFile {
   public:
    File(CrashDisk& disk, std::filesystem::path path, std::shared_ptr<Node> node,
         std::unique_ptr<core::DiskFile> real)
        : disk_(disk), path_(std::move(path)), node_(std::move(node)), real_(std::move(real)) {}

    void write(std::span<const std::byte> bytes) override {
      // A cut in the middle of a write leaves its first half.
      if (disk_.left_ == 0) append(bytes.first(bytes.size() / 2));
      disk_.begin("write", path_);
      append(bytes);
    }
    void sync() override {
      disk_.begin("sync", path_);
      node_->durable_bytes = node_->bytes;
    }

   private:
    void append(std::span<const std::byte> bytes) {
      real_->write(bytes);
      for (const std::byte byte : bytes) node_->bytes += static_cast<char>(byte);
    }

    CrashDisk& disk_;
    std::filesystem::path path_;
    std::shared_ptr<Node> node_;
    std::unique_ptr<core::DiskFile> real_;
  };

  static core::Disk& system() { return core::system_disk(); }

  void begin(const std::string& operation, const std::filesystem::path& path) {
    if (left_ == 0) throw PowerCut();
    --left_;
    if (before) before(operation, path);
  }

  std::shared_ptr<Node> find(const std::filesystem::path& path) {
    std::shared_ptr<Node> node = tree_;
    const std::filesystem::path inside = path.lexically_relative(root_);
    for (const auto& part : inside) {
      if (part != ".") node = node->names.at(part);
    }
    return node;
  }
  Node& folder_of(const std::filesystem::path& path) { return *find(path.parent_path()); }

  static void settle(Node& node, Lost lost) {
    if (node.kind == Node::kFile) node.bytes = node.durable_bytes;
    if (lost == Lost::kEverything) node.names = node.durable_names;
    node.durable_names = node.names;
    for (const auto& [name, child] : node.names) settle(*child, lost);
  }
  static void lay_out(const Node& node, const std::filesystem::path& path) {
    if (node.kind == Node::kLink) {
      std::filesystem::create_symlink(node.bytes, path);
    } else if (node.kind == Node::kFile) {
      std::ofstream(path, std::ios::binary) << node.bytes;
    } else {
      std::filesystem::create_directory(path);
      for (const auto& [name, child] : node.names) lay_out(*child, path / name);
    }
  }

  std::filesystem::path root_;
  int left_ = std::numeric_limits<int>::max();
  std::shared_ptr<Node> tree_ = [] {
    auto node = std::make_shared<Node>();
    node->kind = Node::kFolder;
    return node;
  }();
};

}  // namespace scaletrain::test
