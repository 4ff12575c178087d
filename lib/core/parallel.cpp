#include "lib/core/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace scaletrain::core {

void for_each_index(std::int64_t count, int threads,
                    const std::function<void(std::int64_t)>& body) {
  std::mutex mutex;
  std::int64_t next = 0;
  std::int64_t failed = count;
  std::exception_ptr error;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (next < count && !error) {
      const std::int64_t turn = next++;
      lock.unlock();
      std::exception_ptr caught;
      try {
        body(turn);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      if (caught && turn < failed) {
        failed = turn;
        error = caught;
      }
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: those that are there do it all
      break;
    }
  }
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace scaletrain::core
