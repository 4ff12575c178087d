#include "lib/core/buffer.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>

using scaletrain::core::Buffer;
using scaletrain::core::make_host_pool;

TEST_CASE("a block returns to its pool and is used again") {
  const auto pool = make_host_pool();
  std::byte* first = nullptr;
  {
    const Buffer buffer = pool->take(1000);
    first = buffer.bytes().data();
    CHECK(buffer.bytes().size() == 1000);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
  }
  CHECK(pool->take(1000).bytes().data() == first);
}

TEST_CASE("a block taken while another is out is another one, and a moved buffer returns once") {
  const auto pool = make_host_pool();
  Buffer a = pool->take(64);
  Buffer b = pool->take(64);
  CHECK(a.bytes().data() != b.bytes().data());
  std::byte* const of_a = a.bytes().data();
  b = std::move(a);
  CHECK(b.bytes().data() == of_a);
}

TEST_CASE("threads may take and return at once") {
  const auto pool = make_host_pool();
  const auto work = [&] {
    for (int round = 0; round < 1000; ++round) {
      const Buffer buffer = pool->take(256);
      buffer.bytes()[0] = std::byte{1};
    }
  };
  std::thread other(work);
  work();
  other.join();
}
