#include "lib/core/process/beat.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/process/stack_dump.h"

namespace scaletrain::core {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kRecent = 32;    // collectives whose names are kept
constexpr std::size_t kNameWords = 5;  // words of eight letters
constexpr std::array<std::string_view, kPhases> kPhaseNames{
    "starting", "joining", "data", "compute", "collective", "validating", "saving", "waiting"};

[[noreturn]] void refuse_memory(const char* what) {
  throw Error(ExitCode::kMemory, what, errno_text(errno), "check memory and ulimit -n");
}

void* map_page(int fd, int protection) {
  void* const address = mmap(nullptr, kPageBytes, protection, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) refuse_memory("mmap of the beat");
  return address;
}

}  // namespace

struct RecentCollective {
  std::atomic<std::int64_t> number;  // 0 while it is being written
  std::atomic<std::int64_t> step;
  std::array<std::atomic<std::uint64_t>, kNameWords> words;
};

// Written by the worker, except `peer_lost`; all zero at first.
struct BeatPage {
  alignas(64) std::atomic<std::uint64_t> count;
  std::atomic<std::uint32_t> phase;
  std::atomic<std::int64_t> step, total_steps, collectives;
  std::atomic<std::int64_t> open;  // collectives entered but not complete
  std::atomic<std::uint32_t> peer_lost;
  std::atomic<std::int32_t> stack_signal;
  std::atomic<std::uint32_t> stacks;
  std::array<RecentCollective, kRecent> recent;
};
static_assert(sizeof(BeatPage) <= kPageBytes);

std::string_view to_text(Phase phase) {
  const auto index = static_cast<std::size_t>(phase);
  return index < kPhaseNames.size() ? kPhaseNames[index] : "unknown";
}

struct Beat::Impl {
  BeatPage* page = nullptr;
  std::unique_ptr<BeatPage> own;
  std::atomic<const char*> next_name{nullptr};

  ~Impl() {
    if (!own && page != nullptr) munmap(page, kPageBytes);
  }

  void beat() { page->count.fetch_add(1, std::memory_order_release); }
};

Beat::Beat() : impl_(std::make_shared<Impl>()) {
  impl_->own = std::make_unique<BeatPage>();
  impl_->page = impl_->own.get();
}

Beat::Beat(int fd) : impl_(std::make_shared<Impl>()) {
  impl_->page = static_cast<BeatPage*>(map_page(fd, PROT_READ | PROT_WRITE));
  impl_->beat();
}

void Beat::offer_stacks(int fd) {
  if (lseek(fd, kPageBytes, SEEK_SET) < 0) refuse_memory("lseek of the beat");
  impl_->page->stack_signal = install_stack_dump(fd, impl_->page->stacks);
}

void Beat::enter(Phase phase) {
  impl_->page->phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  impl_->beat();
}

void Beat::begin_step(std::int64_t step) {
  impl_->page->step.store(step, std::memory_order_relaxed);
  impl_->beat();
}

void Beat::set_total_steps(std::int64_t steps) { impl_->page->total_steps = steps; }

void Beat::name_next(const char* name) { impl_->next_name = name; }

std::int64_t Beat::step() const { return impl_->page->step; }

bool Beat::peer_is_lost() const { return impl_->page->peer_lost != 0; }

const char* Beat::enter_collective(const char* kind) {
  BeatPage& page = *impl_->page;
  const char* name = impl_->next_name.exchange(nullptr);
  if (name == nullptr) name = "gradients";  // only the Reducer's collectives have no name
  std::string text = kind;
  text += ' ';
  text += name;
  text.resize(kNameWords * sizeof(std::uint64_t));

  const std::int64_t number = page.collectives.load(std::memory_order_relaxed) + 1;
  RecentCollective& recent = page.recent[static_cast<std::size_t>(number) % kRecent];
  recent.number = 0;
  recent.step = page.step.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kNameWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i * sizeof word, sizeof word);
    recent.words[i] = word;
  }
  recent.number = number;
  page.collectives = number;
  ++page.open;
  impl_->beat();
  return name;
}

void Beat::complete_collective() {
  --impl_->page->open;
  impl_->beat();
}

void Beat::leave_collective() { impl_->beat(); }

Descriptor make_beat_file() {
  Descriptor fd = make_memory_file("scaletrain-beat");
  if (ftruncate(fd.get(), kPageBytes) != 0) refuse_memory("memfd");
  return fd;
}

void report_peer_lost(int fd) {
  auto* const page = static_cast<BeatPage*>(map_page(fd, PROT_READ | PROT_WRITE));
  page->peer_lost = 1;
  munmap(page, kPageBytes);
}

BeatReader::BeatReader(int fd)
    : fd_(fd), page_(static_cast<const BeatPage*>(map_page(fd, PROT_READ))) {}

BeatReader::BeatReader(BeatReader&& other) noexcept
    : fd_(other.fd_), page_(std::exchange(other.page_, nullptr)) {}

BeatReader::~BeatReader() {
  if (page_ != nullptr) munmap(const_cast<BeatPage*>(page_), kPageBytes);
}

BeatState BeatReader::state() const {
  return {.count = page_->count.load(std::memory_order_acquire),
          .phase = page_->open > 0 ? Phase::kCollective : static_cast<Phase>(page_->phase.load()),
          .step = page_->step,
          .total_steps = page_->total_steps,
          .collectives = page_->collectives,
          .stack_signal = page_->stack_signal,
          .stacks = page_->stacks};
}

std::optional<BeatCollective> BeatReader::collective(std::int64_t number) const {
  const RecentCollective& recent = page_->recent[static_cast<std::size_t>(number) % kRecent];
  if (number <= 0 || recent.number != number) return std::nullopt;
  BeatCollective result{.kind = "", .name = "", .step = recent.step};
  std::array<char, kNameWords * sizeof(std::uint64_t)> letters{};
  for (std::size_t i = 0; i < kNameWords; ++i) {
    const std::uint64_t word = recent.words[i];
    std::memcpy(letters.data() + i * sizeof word, &word, sizeof word);
  }
  if (recent.number != number) return std::nullopt;  // overwritten meanwhile by a newer collective
  const std::string_view text(letters.data(), strnlen(letters.data(), letters.size()));
  const std::size_t space = std::min(text.find(' '), text.size());
  result.kind = text.substr(0, space);
  result.name = text.substr(std::min(space + 1, text.size()));
  return result;
}

std::string BeatReader::stacks() const {
  struct stat status = {};
  if (fstat(fd_, &status) != 0 || status.st_size <= static_cast<off_t>(kPageBytes)) return "";
  constexpr off_t kMost = 16 << 20;  // limit, in case a worker writes nonsense there
  std::string text(static_cast<std::size_t>(
                       std::min<off_t>(status.st_size - static_cast<off_t>(kPageBytes), kMost)),
                   '\0');
  const ssize_t count = pread(fd_, text.data(), text.size(), kPageBytes);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace scaletrain::core
