#include "lib/core/disk/stream_copy.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>

#include "lib/core/cpu.h"
#endif

namespace scaletrain::core {

#ifdef __SSE2__
namespace {

constexpr std::size_t kLine = 64;  // size of a cache line, which is written as a whole

// Both copy so many lines to where one begins.
void stream_lines(const std::byte* from, std::byte* to, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, from += kLine, to += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from);
    auto* const target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
}

// A line in one write: none leaves the processor in parts, as lines do at times while several cores
// write.
[[gnu::target("avx512f")]] void avx512_stream_lines(const std::byte* from, std::byte* to,
                                                    std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, from += kLine, to += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

}  // namespace

void stream_copy(std::span<const std::byte> from, std::byte* to) {
  const std::size_t before = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (from.size() < before + kLine) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  std::memcpy(to, from.data(), before);
  const std::size_t lines = (from.size() - before) / kLine, end = before + lines * kLine;
  (has_avx512() ? avx512_stream_lines : stream_lines)(from.data() + before, to + before, lines);
  std::memcpy(to + end, from.data() + end, from.size() - end);
  _mm_sfence();  // such writes are seen by other threads in any order until here
}
#else
void stream_copy(std::span<const std::byte> from, std::byte* to) {
  std::memcpy(to, from.data(), from.size());
}
#endif

}  // namespace scaletrain::core
