#include "lib/units/parallel.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using scaletrain::units::parallel_for;

// Puts the number of threads back.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TEST_CASE("each number is in one part, and the parts run on as many threads as ATen has") {
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    const Threads set(threads);
    std::vector<int> calls(1000);
    std::set<std::thread::id> seen;
    std::mutex mutex;
    parallel_for(0, 1000, 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++calls[static_cast<std::size_t>(i)];
      const std::lock_guard<std::mutex> lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    CHECK(calls == std::vector<int>(1000, 1));
    CHECK(seen.size() == static_cast<std::size_t>(threads));
  }
}

TEST_CASE("what is no more than a grain is one part, and nothing is none") {
  const Threads set(2);
  int parts = 0;
  parallel_for(5, 15, 10, [&](std::int64_t begin, std::int64_t end) {
    ++parts;
    CHECK(begin == 5);
    CHECK(end == 15);
  });
  parallel_for(3, 3, 1, [&](std::int64_t, std::int64_t) { ++parts; });
  CHECK(parts == 1);
}

TEST_CASE("an exception of a part comes out") {
  const Threads set(2);
  CHECK_THROWS_WITH_AS(parallel_for(0, 2, 1,
                                    [](std::int64_t begin, std::int64_t) {
                                      if (begin == 1) throw std::runtime_error("part 1");
                                    }),
                       "part 1", std::runtime_error);
}

}  // namespace
