#include "lib/core/stream_copy.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace scaletrain::core {

#ifdef __SSE2__
namespace {

constexpr std::size_t kLine = 64;  // of a cache, which is written as a whole

}  // namespace

void stream_copy(std::span<const std::byte> from, std::byte* to) {
  const std::size_t before = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (from.size() < before + kLine) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  std::memcpy(to, from.data(), before);
  std::size_t i = before;
  for (; i + kLine <= from.size(); i += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from.data() + i);
    auto* const target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + i, from.data() + i, from.size() - i);
  _mm_sfence();  // such writes are seen by other threads in any order until here
}
#else
void stream_copy(std::span<const std::byte> from, std::byte* to) {
  std::memcpy(to, from.data(), from.size());
}
#endif

}  // namespace scaletrain::core
