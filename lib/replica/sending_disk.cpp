#include "lib/replica/sending_disk.h"

#include <fmt/format.h>

#include <fstream>
#include <span>

#include "lib/core/disk/temporary_name.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::replica {
namespace {

namespace fs = std::filesystem;

// Step of the folder in which a checkpoint is being written; -1: it is another folder.
std::int64_t step_under_way(const std::string& folder) {
  if (!core::parse_temporary(folder)) return -1;
  return format::step_of_name(folder.substr(0, folder.find('.'))).value_or(-1);
}

}  // namespace

SendingDisk::SendingDisk(core::Disk& disk, const std::vector<Address>& nodes, Patience patience)
    : disk_(disk) {
  for (const Address& node : nodes) nodes_.push_back({.peer = {node, gives_up_, patience}});
}

template <class Talk>
void SendingDisk::each_node(const Talk& words) {
  for (Node& node : nodes_) {
    if (!node.lack.empty()) continue;
    try {
      words(node.peer);
    } catch (const core::Error& error) {
      node.lack = fmt::format("{}: {}", error.place(), error.found());
    }
  }
}

// A file that is sent to a node as it is written; the answer is read when it is synced.
class SendingDisk::File : public core::DiskFile {
 public:
  File(SendingDisk& disk, std::unique_ptr<core::DiskFile> file)
      : disk_(disk), file_(std::move(file)) {}

  void write(std::span<const std::byte> bytes) override {
    file_->write(bytes);
    send(bytes);
  }
  void write_lasting(std::span<const std::byte> bytes) override {
    file_->write_lasting(bytes);
    send(bytes);
  }
  void sync() override {
    file_->sync();
    disk_.each_node([](Peer& peer) { peer.end_file(); });
  }

 private:
  void send(std::span<const std::byte> bytes) {
    disk_.each_node([&](Peer& peer) { peer.send(bytes); });
  }

  SendingDisk& disk_;
  std::unique_ptr<core::DiskFile> file_;
};

bool SendingDisk::enter(const fs::path& path) {
  const std::string folder = path.parent_path().filename();
  const std::int64_t step = step_under_way(folder);
  if (step < 0 || path.filename() == format::kManifestName) return false;
  if (folder != save_) {
    save_ = folder;
    for (Node& node : nodes_) node.lack.clear();
  }
  step_ = step;
  return true;
}

std::unique_ptr<core::DiskFile> SendingDisk::create(const fs::path& path,
                                                    std::int64_t expected_bytes) {
  std::unique_ptr<core::DiskFile> file = disk_.create(path, expected_bytes);
  if (!enter(path)) return file;
  each_node([&](Peer& peer) { peer.begin_file(save_, step_, path.filename()); });
  return std::make_unique<File>(*this, std::move(file));
}

void SendingDisk::link_file(const fs::path& file, const fs::path& name) {
  disk_.link_file(file, name);
  if (!enter(name)) return;
  each_node([&](Peer& peer) { peer.begin_file(save_, step_, name.filename()); });
  std::ifstream stream(name, std::ios::binary);
  std::vector<char> piece(kPieceBytes);
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto bytes = static_cast<std::size_t>(stream.gcount());
    each_node([&](Peer& peer) { peer.send(std::as_bytes(std::span(piece).first(bytes))); });
  }
  each_node([](Peer& peer) { peer.end_file(); });
}

std::vector<std::string> SendingDisk::lacks() const {
  std::vector<std::string> all;
  for (const Node& node : nodes_) {
    if (!node.lack.empty()) all.push_back(node.lack);
  }
  return all;
}

}  // namespace scaletrain::replica
