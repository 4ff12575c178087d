#include "lib/core/thread_limit.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

namespace scaletrain::core {
namespace {

std::ptrdiff_t threads_now() {
  std::error_code unknown;
  const std::filesystem::directory_iterator tasks("/proc/self/task", unknown);
  return std::distance(begin(tasks), end(tasks));
}

void start_and_join(int count) {
  std::latch may_end(1);
  std::vector<std::jthread> threads;  // ends before the latch
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([&may_end] { may_end.wait(); });
  } catch (...) {
    may_end.count_down();
    throw;
  }
  may_end.count_down();
}

}  // namespace

bool is_thread_refusal(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  return of_system != nullptr &&
         of_system->code().default_error_condition() == std::errc::resource_unavailable_try_again;
}

void try_threads(int count) {
  constexpr int kMostLooks = 1000;
  const std::ptrdiff_t before = threads_now();
  start_and_join(count);
  // A thread that was joined counts until the kernel has let it go.
  for (int i = 0; i < kMostLooks && threads_now() > before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace scaletrain::core
