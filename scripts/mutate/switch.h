// The switch of the mutants that scripts/mutate.sh puts into a copy of a source file. The
// environment variable SCALETRAIN_MUTANT has the number of the mutant that is on;
// SCALETRAIN_MUTANTS_LOG names a file that takes the number of each mutant when a test case first
// reaches it, a line each, negative where the statement's type has no other value to return.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

#ifndef SCALETRAIN_MUTANTS
#error "SCALETRAIN_MUTANTS: 1 + the highest number of a mutant"
#endif

namespace scaletrain_mutants {

inline int chosen() {
  static const int number = [] {
    const char* text = std::getenv("SCALETRAIN_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number;
}

inline int log_file() {
  static const int file = [] {
    const char* path = std::getenv("SCALETRAIN_MUTANTS_LOG");
    return path == nullptr ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }();
  return file;
}

inline void log_line(const std::string& line) {
  const std::string whole = line + "\n";
  if (log_file() < 0) return;
  if (write(log_file(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) abort();
}

inline std::atomic<bool> reached[SCALETRAIN_MUTANTS];

inline void log(int number) {
  if (log_file() < 0 || reached[std::abs(number)].exchange(true)) return;
  log_line(std::to_string(number));
}

inline bool on_at_run_time(int number) {
  log(number);
  return chosen() == number;
}

constexpr bool on(int number) { return !std::is_constant_evaluated() && on_at_run_time(number); }

// A condition the other way round.
template <class T>
constexpr bool negated(int number, T&& condition) {
  return static_cast<bool>(std::forward<T>(condition)) != on(number);
}

// A loop that is not run.
template <class T>
constexpr bool runs(int number, T&& condition) {
  return static_cast<bool>(std::forward<T>(condition)) && !on(number);
}

// A number one higher, or 0 where it is too large for that; a bool the other way round.
template <class T>
constexpr T changed(int number, T value) {
  if (!on(number)) return value;
  if constexpr (std::is_same_v<T, bool>) {
    return !value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(static_cast<std::underlying_type_t<T>>(value) + 1);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(value) + 1);
  } else {
    return value + T(1) == value ? T(0) : value + T(1);
  }
}

// Whether a return statement gives T{} instead.
template <class T>
bool empties(int number) {
  if constexpr (std::is_default_constructible_v<T>) {
    return on(number);
  } else {
    if (!std::is_constant_evaluated()) log(-number);
    return false;
  }
}

template <class T>
T empty() {
  if constexpr (std::is_default_constructible_v<T>) {
    return T();
  } else {
    std::abort();
  }
}

// What is thrown instead of an exception that has to end a function.
struct Other {};

}  // namespace scaletrain_mutants
