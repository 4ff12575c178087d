#include "lib/dist/shm/meeting.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

constexpr const char* kOtherHost = "other host";

// Returns a text that is equal for all processes that can open each other's files in /proc.
std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string identity = boot;
  for (const char* const space : {"pid", "net"}) {
    std::error_code failed;
    identity +=
        ' ' +
        std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", space), failed).string();
  }
  return identity;
}

std::string answer_key(int rank) { return fmt::format("shm/answer/{}", rank); }
std::string heard_key(int rank) { return fmt::format("shm/heard/{}", rank); }

// The store ends with rank 0, so rank 0 stays until the other ranks have read the verdict or seem
// to be gone.
void await_hearers_of_verdict(c10d::Store& store, int ranks) {
  constexpr std::chrono::seconds kLimit{5};
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 1; rank < ranks; ++rank) keys.push_back(heard_key(rank));
  try {
    store.wait(keys, kLimit);
  } catch (const c10::DistStoreError&) {
  }
}

struct Offer {
  std::string host, address;  // "": rank 0 has no memory
  std::string trouble;
};

std::string to_text(const Offer& offer) {
  return fmt::format("{}\n{}\n{}", offer.host, offer.address, offer.trouble);
}

Offer parse_offer(const std::string& text) {
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  return {.host = text.substr(0, first),
          .address = text.substr(first + 1, second - first - 1),
          .trouble = text.substr(second + 1)};
}

// Opens the memory that rank 0 offers. Returns "", kOtherHost, or why it cannot be opened.
std::string open_offer(const Offer& offer, int rank, std::unique_ptr<ShmArena>& arena) {
  if (offer.host != host_identity()) return kOtherHost;
  if (offer.address.empty()) return "";  // rank 0 reports the reason
  try {
    arena = std::make_unique<ShmArena>(offer.address, rank);
  } catch (const core::Error& error) {
    return error.found();
  }
  return "";
}

Offer make_offer(int ranks, std::unique_ptr<ShmArena>& arena) {
  Offer offer{.host = host_identity(), .address = "", .trouble = ""};
  try {
    arena = std::make_unique<ShmArena>(arena_shape(ranks));
    offer.address = arena->address();
  } catch (const core::Error& error) {
    offer.trouble = error.found();
  }
  return offer;
}

// Rank 0 reads all answers; "" if all ranks have opened the memory.
std::string judge_answers(c10d::Store& store, int ranks, const std::string& own_trouble) {
  std::string verdict = own_trouble.empty() ? "" : fmt::format("rank 0: {}", own_trouble);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::string answer = store.get_to_str(answer_key(rank));
    if (answer == kOtherHost) return kOtherHost;
    if (!answer.empty() && verdict.empty()) verdict = fmt::format("rank {}: {}", rank, answer);
  }
  return verdict;
}

}  // namespace

// Pieces of 512 kB: smaller ones stay in closer caches but cost more waits, each of which needs a
// free core. With many ranks the pieces are smaller to limit the total.
ArenaShape arena_shape(int ranks) {
  constexpr std::size_t kMost = std::size_t{1} << 19, kLeast = std::size_t{1} << 16;
  constexpr std::size_t kAll = std::size_t{1} << 22;  // one slot of all ranks
  const std::size_t each = kAll / static_cast<std::size_t>(ranks) / 64 * 64;
  return {.ranks = ranks, .slots = 4, .slot_bytes = std::clamp(each, kLeast, kMost)};
}

ShmMeeting meet_in_memory(c10d::Store& store, int rank, int ranks) {
  ShmMeeting meeting;
  if (rank == 0) {
    const Offer offer = make_offer(ranks, meeting.arena);
    store.set("shm/offer", to_text(offer));
    store.set("shm/verdict", judge_answers(store, ranks, offer.trouble));
  } else {
    const Offer offer = parse_offer(store.get_to_str("shm/offer"));
    store.set(answer_key(rank), open_offer(offer, rank, meeting.arena));
  }
  meeting.why_not = store.get_to_str("shm/verdict");
  meeting.one_host = meeting.why_not != kOtherHost;
  if (meeting.why_not.empty()) return meeting;
  meeting.arena.reset();
  if (rank == 0) {
    await_hearers_of_verdict(store, ranks);
  } else {
    store.set(heard_key(rank), "1");
  }
  return meeting;
}

}  // namespace scaletrain::dist
