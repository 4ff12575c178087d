// Threads as the ranks of one exchange.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/dist/shm/exchange.h"

namespace scaletrain::testing {

// The arenas of a group whose ranks are all in this process.
inline std::vector<std::unique_ptr<dist::ShmArena>> make_arenas(const dist::ArenaShape& shape) {
  std::vector<std::unique_ptr<dist::ShmArena>> arenas;
  arenas.reserve(static_cast<std::size_t>(shape.ranks));
  arenas.push_back(std::make_unique<dist::ShmArena>(shape));
  const std::string address = arenas.front()->address();
  for (int rank = 1; rank < shape.ranks; ++rank) {
    arenas.push_back(std::make_unique<dist::ShmArena>(address, rank));
  }
  return arenas;
}

// Runs `body` on each rank; returns what each threw, "" where it threw nothing.
inline std::vector<std::string> run_exchange(
    const dist::ArenaShape& shape, const std::function<void(dist::ShmExchange& exchange)>& body,
    std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  auto arenas = make_arenas(shape);
  std::vector<std::string> said(arenas.size());
  std::vector<std::jthread> threads;
  threads.reserve(arenas.size());
  for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
    threads.emplace_back([&, rank] {
      dist::ShmExchange exchange(std::move(arenas[rank]), timeout);
      try {
        body(exchange);
      } catch (const c10::Error& error) {
        said[rank] = error.what_without_backtrace();
      } catch (const std::exception& error) {
        said[rank] = error.what();
      }
    });
  }
  threads.clear();  // waits for them
  return said;
}

}  // namespace scaletrain::testing
