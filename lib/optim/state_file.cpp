#include "lib/optim/state_file.h"

#include <c10/core/CPUAllocator.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/disk_faults.h"
#include "lib/core/disk/huge_pages.h"
#include "lib/core/log.h"

namespace scaletrain::optim {
namespace {

constexpr std::size_t kPage = core::kAsyncUnit;

std::size_t round_up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Opens an unnamed file; on a file system without such files, one whose name is removed at once.
core::Descriptor open_nameless(const std::filesystem::path& folder) {
  core::Descriptor fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = (folder / ".scaletrain-optimizer-XXXXXX").string();
  fd = core::Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (fd) ::unlink(name.c_str());
  return fd;
}

}  // namespace

StateFile::StateFile(const std::filesystem::path& folder, core::AsyncFile::Way way)
    : path_(folder / "(optimizer state)") {
  core::system_disk().make_folders(folder);
  core::Descriptor fd = open_nameless(folder);
  if (!fd) core::throw_disk_fault(folder, "make a file for the optimizer's state there", errno);
  fd_ = fd.get();
  file_ = std::make_unique<core::AsyncFile>(path_, std::move(fd), way);
}

StateFile::~StateFile() {
  file_.reset();  // waits for transfers in the buffers
  for (const Portion& portion : portions_) {
    if (portion.mapping != nullptr) ::munmap(portion.mapping, portion.bytes);
  }
}

void StateFile::add(const std::vector<at::Tensor>& tensors) {
  Portion& portion = portions_.emplace_back();
  portion.place = end_;
  std::set<const c10::StorageImpl*> known;
  for (const at::Tensor& tensor : tensors) {
    const c10::Storage& storage = tensor.storage();
    const std::size_t bytes = storage.nbytes();
    if (bytes < kPage || !known.insert(storage.unsafeGetStorageImpl()).second) continue;
    portion.regions.push_back({.storage = storage, .place = portion.bytes, .bytes = bytes});
    portion.bytes += round_up(bytes);
  }
  if (portion.bytes == 0) return;
  reserve(portion.bytes);
  const std::span<std::byte> memory = take_buffer(portion);
  for (const Region& region : portion.regions) {
    std::memcpy(memory.data() + region.place, region.storage.data(), region.bytes);
  }
  file_->wait(file_->write(portion.place, memory));
  void* const mapping = ::mmap(nullptr, portion.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_,
                               static_cast<off_t>(portion.place));
  if (mapping == MAP_FAILED) core::throw_disk_fault(path_, "map it to memory", errno);
  portion.mapping = static_cast<std::byte*>(mapping);
  place_at(portion, portion.mapping);
  end_ += static_cast<std::int64_t>(portion.bytes);
}

// Now rather than in the middle of a training.
void StateFile::reserve(std::size_t bytes) const {
  const auto count = static_cast<off_t>(bytes);
  while (::fallocate(fd_, 0, static_cast<off_t>(end_), count) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP && ::ftruncate(fd_, static_cast<off_t>(end_) + count) == 0) return;
    core::throw_disk_fault(
        path_, fmt::format("reserve {} bytes behind {} of the optimizer's state", bytes, end_),
        errno);
  }
}

// Returns the least recently used buffer.
std::span<std::byte> StateFile::take_buffer(Portion& portion) {
  portion.buffer = std::exchange(next_buffer_, (next_buffer_ + 1) % kBuffers);
  Buffer& buffer = buffers_.at(portion.buffer);
  file_->wait(std::exchange(buffer.last, 0));
  if (buffer.bytes < portion.bytes) {
    buffer.memory.clear();  // before there is more
    buffer.memory = c10::GetCPUAllocator()->allocate(portion.bytes + kPage);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.memory.get());
    buffer.begin = static_cast<std::byte*>(buffer.memory.get()) + (kPage - address % kPage) % kPage;
    buffer.bytes = portion.bytes;
    core::ask_for_huge_pages({buffer.begin, buffer.bytes});
  }
  return {buffer.begin, portion.bytes};
}

void StateFile::place_at(const Portion& portion, std::byte* memory) {
  for (const Region& region : portion.regions) {
    region.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(
        at::DataPtr(memory + region.place, at::kCPU));
  }
}

void StateFile::fetch(std::size_t number) {
  Portion& portion = portions_.at(number);
  if (portion.bytes == 0) return;
  file_->wait(std::exchange(portion.writing, 0));
  const std::span<std::byte> memory = take_buffer(portion);
  portion.reading = file_->read(portion.place, memory);
  buffers_.at(portion.buffer).last = portion.reading;
}

void StateFile::enter(std::size_t number) {
  Portion& portion = portions_.at(number);
  if (portion.bytes == 0) return;
  file_->wait(std::exchange(portion.reading, 0));
  place_at(portion, buffers_.at(portion.buffer).begin);
}

void StateFile::leave(std::size_t number) {
  Portion& portion = portions_.at(number);
  if (portion.bytes == 0) return;
  Buffer& buffer = buffers_.at(portion.buffer);
  portion.writing = buffer.last = file_->write(portion.place, {buffer.begin, portion.bytes});
  place_at(portion, portion.mapping);
}

void StateFile::finish() {
  for (Portion& portion : portions_) file_->wait(std::exchange(portion.writing, 0));
}

}  // namespace scaletrain::optim
