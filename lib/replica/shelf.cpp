#include "lib/replica/shelf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::replica {
namespace {

constexpr const char* kPlace = "the memory for other nodes' checkpoints";

}  // namespace

HeldFile::HeldFile(std::shared_ptr<std::atomic<std::int64_t>> held, std::int64_t most)
    : held_(std::move(held)), most_(most), memory_(core::make_memory_file("scaletrain-replica")) {}

HeldFile::~HeldFile() { *held_ -= bytes_; }

void HeldFile::append(std::span<const std::byte> bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  bytes_ += count;
  if ((*held_ += count) > most_) {
    throw core::OutOfMemoryError(kPlace, fmt::format("may take {} bytes and no more", most_));
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(memory_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw core::OutOfMemoryError(kPlace, core::errno_text(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void HeldFile::read(std::int64_t begin, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(memory_.get(), into.data(), into.size(), begin);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw core::InternalError(kPlace, "has lost bytes of a file");
    begin += count;
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

Shelf::Shelf(std::int64_t most_bytes)
    : most_(most_bytes), held_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

Shelf::Save* Shelf::newest(const std::string& save) {
  const auto found = std::find_if(saves_.rbegin(), saves_.rend(),
                                  [&](const Save& one) { return one.known.name == save; });
  return found == saves_.rend() ? nullptr : &*found;
}

// A complete save of that name is an earlier one of the same step.
Shelf::Save& Shelf::under_way(const std::string& save, std::int64_t step) {
  Save* const known = newest(save);
  if (known != nullptr && known->known.manifest.empty()) return *known;
  const auto is_whole = [](const Save& one) { return !one.known.manifest.empty(); };
  const auto last = std::find_if(saves_.rbegin(), saves_.rend(), is_whole);
  const Save* const kept = last == saves_.rend() ? nullptr : &*last;
  saves_.remove_if([&](const Save& one) { return &one != kept; });
  return saves_.emplace_back(Save{.known = {.name = save, .step = step}});
}

std::shared_ptr<HeldFile> Shelf::begin(const std::string& save, std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    under_way(save, step);
  }
  return std::make_shared<HeldFile>(held_, most_);
}

void Shelf::put(const std::string& save, const std::string& name,
                std::shared_ptr<const HeldFile> file) {
  const std::lock_guard lock(mutex_);
  Save* const known = newest(save);
  if (known == nullptr || !known->known.manifest.empty()) return;
  known->known.files[name] = file->bytes();
  known->files[name] = std::move(file);
}

void Shelf::finish(const std::string& save, std::int64_t step, const std::string& manifest,
                   const std::string& seal) {
  const std::lock_guard lock(mutex_);
  Save& finished = under_way(save, step);
  finished.known.manifest = manifest;
  finished.known.seal = seal;
}

std::vector<HeldSave> Shelf::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<HeldSave> all;
  for (const Save& one : saves_) all.push_back(one.known);
  return all;
}

std::shared_ptr<const HeldFile> Shelf::find(const std::string& save,
                                            const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto newest = std::find_if(saves_.rbegin(), saves_.rend(),
                                   [&](const Save& one) { return one.known.name == save; });
  if (newest == saves_.rend()) return nullptr;
  const auto file = newest->files.find(name);
  return file == newest->files.end() ? nullptr : file->second;
}

void Shelf::forget_beyond(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  saves_.remove_if([&](const Save& one) { return one.known.step > step; });
}

}  // namespace scaletrain::replica
