// Makes items with several threads and uses them in order with one, so that results do not depend
// on threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace scaletrain::app {

// Calls use(i, make(i, thread)) for i = 0 .. count-1 in order. `make` runs in `threads` threads,
// numbered from 0, at most 8 items per thread ahead of `use`, which runs in the caller's thread.
// Throws the first exception in item order, after all threads have ended. If the system refuses
// some threads, the others do all the work; throws std::system_error if it refuses all.
template <class T>
void in_order(std::int64_t count, int threads,
              const std::function<T(std::int64_t item, int thread)>& make,
              const std::function<void(std::int64_t item, T made)>& use) {
  struct Slot {
    std::unique_ptr<T> made;
    std::exception_ptr failure;
    bool ready = false;
  };
  constexpr std::size_t kAhead = 8;
  std::vector<Slot> slots(static_cast<std::size_t>(threads) * kAhead);
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t next = 0, used = 0;
  bool stopped = false;
  const auto slot_of = [&](std::int64_t item) -> Slot& {
    return slots[static_cast<std::size_t>(item) % slots.size()];
  };

  const auto work = [&](int thread) {
    while (true) {
      std::int64_t item = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] {
          return stopped || next == count || next - used < static_cast<std::int64_t>(slots.size());
        });
        if (stopped || next == count) return;
        item = next++;
      }
      Slot made;
      made.ready = true;
      try {
        made.made = std::make_unique<T>(make(item, thread));
      } catch (...) {
        made.failure = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        slot_of(item) = std::move(made);
      }
      changed.notify_all();
    }
  };

  std::exception_ptr failure;
  std::vector<std::jthread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  try {
    for (int thread = 0; thread < threads; ++thread) {
      try {
        workers.emplace_back(work, thread);
      } catch (const std::system_error&) {  // no more threads: those that are there do it all
        if (thread == 0) throw;
        break;
      }
    }
    for (std::int64_t item = 0; item < count; ++item) {
      Slot slot;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return slot_of(item).ready; });
        slot = std::move(slot_of(item));
        slot_of(item).ready = false;
        ++used;
      }
      changed.notify_all();
      if (slot.failure) std::rethrow_exception(slot.failure);
      use(item, std::move(*slot.made));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    stopped = true;
  }
  changed.notify_all();
  workers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace scaletrain::app
