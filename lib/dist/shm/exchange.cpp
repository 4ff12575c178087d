#include "lib/dist/shm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "lib/core/disk/stream_copy.h"
#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/dist/shm/sums.h"

namespace scaletrain::dist {
namespace {

// The names are of errors.
enum class Kind : std::uint32_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kGather,
  kBroadcast,
  kAllToAll,
  kBarrier,
};
constexpr std::array kKindNames = {"all-reduce", "reduce-scatter", "all-gather", "gather",
                                   "broadcast",  "all-to-all",     "barrier"};

// Rounds that are written before the first is read; less than the number of slots.
constexpr std::size_t kAhead = 2;
constexpr std::size_t kAlignment = 64;
// Minimum size from which each of several ranks reduces a part.
constexpr std::size_t kInPartsBytes = 1 << 14;
// Minimum size received from which an all-to-all bypasses the caches, which would not keep it.
constexpr std::size_t kStreamedBytes = std::size_t{8} << 20;

std::size_t rounds_for(std::size_t bytes, std::size_t each) {
  return std::max<std::size_t>(1, (bytes + each - 1) / each);
}

std::size_t align(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Returns part `number` of `whole` in steps of `each`; empty past the end.
template <class Span>
Span piece(Span whole, std::size_t number, std::size_t each) {
  const std::size_t begin = std::min(whole.size(), number * each);
  return whole.subspan(begin, std::min(each, whole.size() - begin));
}

void copy(ConstBytes from, std::byte* to) {
  if (!from.empty() && from.data() != to) std::memcpy(to, from.data(), from.size());
}

void streamed_copy(ConstBytes from, std::byte* to) {
  if (!from.empty() && from.data() != to) core::stream_copy(from, to);
}

template <class Span>
std::uint64_t digest_of_sizes(const std::vector<Span>& spans) {
  std::vector<std::uint64_t> sizes(spans.size());
  std::transform(spans.begin(), spans.end(), sizes.begin(), [](Span one) { return one.size(); });
  return core::xxh3_64(std::as_bytes(std::span(sizes)));
}

template <class Span>
std::size_t longest(const std::vector<Span>& spans) {
  std::size_t most = 0;
  for (const Span one : spans) most = std::max(most, one.size());
  return most;
}

// Returns the index of the part of rank `from`'s slot that is for rank `to`; a rank has no part for
// itself.
std::size_t place(std::size_t to, std::size_t from) { return to < from ? to : to - 1; }

ShmCall call_of(Kind kind, std::size_t bytes) {
  return {.kind = static_cast<std::uint32_t>(kind), .bytes = bytes};
}

ShmCall call_of(Kind kind, std::size_t bytes, const Reduction& reduction) {
  ShmCall call = call_of(kind, bytes);
  call.type = static_cast<std::uint32_t>(reduction.type);
  call.operation = static_cast<std::uint32_t>(reduction.operation);
  return call;
}

std::string text_of(const ShmCall& call) {
  const auto kind = static_cast<std::size_t>(call.kind);
  std::string text = fmt::format("{} of {} bytes", kKindNames.at(kind), call.bytes);
  if (kind == static_cast<std::size_t>(Kind::kAllReduce) ||
      kind == static_cast<std::size_t>(Kind::kReduceScatter)) {
    text += fmt::format(" ({}, operation {})",
                        c10::toString(static_cast<c10::ScalarType>(call.type)), call.operation);
  }
  if (call.root != 0) text += fmt::format(" at rank {}", call.root);
  return text;
}

// Step of an all-reduce in parts: each rank has written chunk `number` for the ranks that reduce
// its parts, or its reduced sums.
struct PartStep {
  bool sums = false;
  std::size_t number = 0;
};

// Chunks go out kDelay steps before their sums, so that these are there when they are written.
constexpr std::size_t kDelay = (kAhead + 1) / 2;

PartStep part_step(std::size_t round) {
  const bool sums = round % 2 == 1;
  // Before the first chunk and after the last there is none: the number is too high.
  return {.sums = sums, .number = round / 2 - (sums ? kDelay : 0)};
}

// How a chunk is divided over the ranks.
struct Division {
  std::size_t each;
  Division(std::size_t bytes, int ranks)
      : each(align((bytes + static_cast<std::size_t>(ranks) - 1) /
                   static_cast<std::size_t>(ranks))) {}
};

}  // namespace

static_assert(sizeof(ShmCall) <= ShmArena::kHeadBytes);

ShmExchange::ShmExchange(std::unique_ptr<ShmArena> arena, std::chrono::milliseconds timeout)
    : arena_(std::move(arena)), timeout_(timeout) {
  if (arena_->shape().slots <= static_cast<int>(kAhead) || ranks() < 2) {
    throw core::InternalError("ShmExchange", "too few slots or ranks");
  }
}

void ShmExchange::give_up() {
  stop();
  arena_->give_up();
}

std::size_t ShmExchange::part_bytes() const {
  return arena_->shape().slot_bytes / static_cast<std::size_t>(ranks() - 1) / kAlignment *
         kAlignment;
}

template <class Put, class Take>
void ShmExchange::run(const ShmCall& call, std::size_t rounds, const Put& put, const Take& take) {
  if (stopped_) throw c10::DistNetworkError({__func__, "exchange.cpp", __LINE__}, "it was ended");
  try {
    run_rounds(call, rounds, put, take);
  } catch (...) {
    stop();
    throw;
  }
}

// For each round i, calls put(i, slot of this rank) and take(i, round), which reads the other
// ranks' slots.
template <class Put, class Take>
void ShmExchange::run_rounds(const ShmCall& call, std::size_t rounds, const Put& put,
                             const Take& take) {
  const Patience patience{.deadline = core::now() + timeout_, .stopped = &stopped_};
  const std::uint32_t first = std::exchange(round_, round_ + static_cast<std::uint32_t>(rounds));
  for (std::size_t i = 0; i < rounds + kAhead; ++i) {
    if (i < rounds) {
      const std::uint32_t round = first + static_cast<std::uint32_t>(i);
      arena_->await_free(round, patience);
      std::memcpy(arena_->head(rank(), round), &call, sizeof call);
      put(i, arena_->slot(rank(), round));
      arena_->publish(round);
    }
    if (i < kAhead) continue;
    const std::uint32_t round = first + static_cast<std::uint32_t>(i - kAhead);
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer != rank()) arena_->await(peer, round, patience);
    }
    if (i == kAhead) compare(call, round);
    take(i - kAhead, round);
    arena_->done(round);
  }
}

void ShmExchange::compare(const ShmCall& call, std::uint32_t round) const {
  for (int peer = 0; peer < ranks(); ++peer) {
    ShmCall other;
    std::memcpy(&other, arena_->head(peer, round), sizeof other);
    if (other == call) continue;
    const std::string differs =
        text_of(other) == text_of(call) ? " with other sizes in its list" : "";
    throw core::InternalError(fmt::format("rank {} of the group", rank()),
                              fmt::format("takes part in {}, and rank {} in {}{}", text_of(call),
                                          peer, text_of(other), differs));
  }
}

void ShmExchange::all_reduce(Bytes data, const Reduction& reduction) {
  const ShmCall call = call_of(Kind::kAllReduce, data.size(), reduction);
  if (ranks() == 2 || data.size() < kInPartsBytes) {
    all_reduce_at_once(data, reduction, call);
  } else {
    all_reduce_in_parts(data, reduction, call);
  }
}

// Each rank adds up everything: one round, and of two ranks no more work than in parts.
void ShmExchange::all_reduce_at_once(Bytes data, const Reduction& reduction, const ShmCall& call) {
  const std::size_t each = arena_->shape().slot_bytes;
  std::vector<const std::byte*> parts(static_cast<std::size_t>(ranks()));
  run(
      call, rounds_for(data.size(), each),
      [&](std::size_t i, std::byte* slot) { copy(piece(data, i, each), slot); },
      [&](std::size_t i, std::uint32_t round) {
        const Bytes chunk = piece(data, i, each);
        for (int peer = 0; peer < ranks(); ++peer) {
          parts[static_cast<std::size_t>(peer)] =
              peer == rank() ? chunk.data() : arena_->slot(peer, round);
        }
        combine(reduction.type, reduction.operation, parts, chunk.data(),
                chunk.size() / c10::elementSize(reduction.type));
      });
}

void ShmExchange::all_reduce_in_parts(Bytes data, const Reduction& reduction, const ShmCall& call) {
  const auto own = static_cast<std::size_t>(rank());
  const std::size_t each = part_bytes() * static_cast<std::size_t>(ranks());
  const std::size_t chunks = rounds_for(data.size(), each);
  std::vector<const std::byte*> parts(static_cast<std::size_t>(ranks()));
  run(
      call, 2 * (chunks + kDelay),
      [&](std::size_t i, std::byte* slot) {
        const PartStep step = part_step(i);
        if (step.number >= chunks) return;
        const Bytes chunk = piece(data, step.number, each);
        const Division division(chunk.size(), ranks());
        if (step.sums) return copy(piece(chunk, own, division.each), slot);
        for (std::size_t peer = 0; peer < parts.size(); ++peer) {
          if (peer == own) continue;
          copy(piece(chunk, peer, division.each), slot + place(peer, own) * division.each);
        }
      },
      [&](std::size_t i, std::uint32_t round) {
        const PartStep step = part_step(i);
        if (step.number >= chunks) return;
        const Bytes chunk = piece(data, step.number, each);
        const Division division(chunk.size(), ranks());
        const Bytes sum = piece(chunk, own, division.each);
        for (std::size_t peer = 0; peer < parts.size(); ++peer) {
          const std::byte* const slot = arena_->slot(static_cast<int>(peer), round);
          parts[peer] = peer == own ? sum.data() : slot + place(own, peer) * division.each;
          const Bytes other = piece(chunk, peer, division.each);
          if (step.sums && peer != own) copy({slot, other.size()}, other.data());
        }
        if (step.sums) return;
        combine(reduction.type, reduction.operation, parts, sum.data(),
                sum.size() / c10::elementSize(reduction.type));
      });
}

void ShmExchange::reduce_scatter(const std::vector<ConstBytes>& inputs, Bytes output,
                                 const Reduction& reduction) {
  const auto own = static_cast<std::size_t>(rank());
  const std::size_t each = part_bytes();
  ShmCall call = call_of(Kind::kReduceScatter, longest(inputs), reduction);
  call.sizes = digest_of_sizes(inputs);
  std::vector<const std::byte*> parts(inputs.size());
  run(
      call, rounds_for(longest(inputs), each),
      [&](std::size_t i, std::byte* slot) {
        for (std::size_t peer = 0; peer < inputs.size(); ++peer) {
          if (peer != own) copy(piece(inputs[peer], i, each), slot + place(peer, own) * each);
        }
      },
      [&](std::size_t i, std::uint32_t round) {
        for (std::size_t peer = 0; peer < inputs.size(); ++peer) {
          parts[peer] = peer == own
                            ? piece(inputs[own], i, each).data()
                            : arena_->slot(static_cast<int>(peer), round) + place(own, peer) * each;
        }
        const Bytes sum = piece(output, i, each);
        combine(reduction.type, reduction.operation, parts, sum.data(),
                sum.size() / c10::elementSize(reduction.type));
      });
}

void ShmExchange::all_gather(ConstBytes input, const std::vector<Bytes>& outputs) {
  const std::size_t each = arena_->shape().slot_bytes;
  copy(input, outputs[static_cast<std::size_t>(rank())].data());
  run(
      call_of(Kind::kAllGather, input.size()), rounds_for(input.size(), each),
      [&](std::size_t i, std::byte* slot) { copy(piece(input, i, each), slot); },
      [&](std::size_t i, std::uint32_t round) {
        for (int peer = 0; peer < ranks(); ++peer) {
          if (peer == rank()) continue;
          const Bytes to = piece(outputs[static_cast<std::size_t>(peer)], i, each);
          copy({arena_->slot(peer, round), to.size()}, to.data());
        }
      });
}

void ShmExchange::gather(ConstBytes input, const std::vector<Bytes>& outputs, int root) {
  const std::size_t each = arena_->shape().slot_bytes;
  const bool is_root = rank() == root;
  ShmCall call = call_of(Kind::kGather, input.size());
  call.root = static_cast<std::uint32_t>(root);
  if (is_root) copy(input, outputs[static_cast<std::size_t>(root)].data());
  run(
      call, rounds_for(input.size(), each),
      [&](std::size_t i, std::byte* slot) {
        if (!is_root) copy(piece(input, i, each), slot);
      },
      [&](std::size_t i, std::uint32_t round) {
        for (int peer = 0; is_root && peer < ranks(); ++peer) {
          if (peer == root) continue;
          const Bytes to = piece(outputs[static_cast<std::size_t>(peer)], i, each);
          copy({arena_->slot(peer, round), to.size()}, to.data());
        }
      });
}

void ShmExchange::broadcast(Bytes data, int root) {
  const std::size_t each = arena_->shape().slot_bytes;
  ShmCall call = call_of(Kind::kBroadcast, data.size());
  call.root = static_cast<std::uint32_t>(root);
  run(
      call, rounds_for(data.size(), each),
      [&](std::size_t i, std::byte* slot) {
        if (rank() == root) copy(piece(data, i, each), slot);
      },
      [&](std::size_t i, std::uint32_t round) {
        const Bytes to = piece(data, i, each);
        if (rank() != root) copy({arena_->slot(root, round), to.size()}, to.data());
      });
}

void ShmExchange::all_to_all(const std::vector<ConstBytes>& inputs,
                             const std::vector<Bytes>& outputs) {
  // Exchanges the sizes first: no rank knows how much is exchanged in all.
  const auto count = static_cast<std::size_t>(ranks());
  std::vector<std::uint64_t> sent(count * count);
  std::vector<std::uint64_t> own(count);
  std::transform(inputs.begin(), inputs.end(), own.begin(), [](auto one) { return one.size(); });
  std::vector<Bytes> rows(count);
  for (std::size_t peer = 0; peer < count; ++peer) {
    rows[peer] = std::as_writable_bytes(std::span(sent)).subspan(8 * count * peer, 8 * count);
  }
  all_gather(std::as_bytes(std::span(own)), rows);
  for (std::size_t peer = 0; peer < count; ++peer) {
    for (std::size_t to = 0; to < count; ++to) {
      const std::uint64_t bytes = sent[count * peer + to];
      if (to != static_cast<std::size_t>(rank()) || bytes == outputs[peer].size()) continue;
      give_up();  // the other ranks may not have failed
      throw core::InternalError(
          fmt::format("rank {} of the group", rank()),
          fmt::format("expects {} bytes of rank {} in an all-to-all, which sends {}",
                      outputs[peer].size(), peer, bytes));
    }
  }
  const std::uint64_t most = *std::max_element(sent.begin(), sent.end());
  exchange_parts(call_of(Kind::kAllToAll, most), rounds_for(most, part_bytes()), inputs, outputs);
}

void ShmExchange::exchange_parts(const ShmCall& call, std::size_t rounds,
                                 const std::vector<ConstBytes>& inputs,
                                 const std::vector<Bytes>& outputs) {
  const auto own = static_cast<std::size_t>(rank());
  const std::size_t each = part_bytes();
  std::size_t brought = 0;
  for (const Bytes output : outputs) brought += output.size();
  const auto copy_out = brought < kStreamedBytes ? copy : streamed_copy;
  copy_out(inputs[own], outputs[own].data());
  run(
      call, rounds,
      [&](std::size_t i, std::byte* slot) {
        for (std::size_t peer = 0; peer < inputs.size(); ++peer) {
          if (peer != own) copy(piece(inputs[peer], i, each), slot + place(peer, own) * each);
        }
      },
      [&](std::size_t i, std::uint32_t round) {
        for (std::size_t peer = 0; peer < outputs.size(); ++peer) {
          if (peer == own) continue;
          const Bytes to = piece(outputs[peer], i, each);
          const std::byte* const slot = arena_->slot(static_cast<int>(peer), round);
          copy_out({slot + place(own, peer) * each, to.size()}, to.data());
        }
      });
}

void ShmExchange::barrier() {
  run(
      call_of(Kind::kBarrier, 0), 1, [](std::size_t /*i*/, std::byte* /*slot*/) {},
      [](std::size_t /*i*/, std::uint32_t /*round*/) {});
}

}  // namespace scaletrain::dist
