// Hashes: SHA-256 against deliberate changes, XXH3 for speed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace scaletrain::core {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view bytes);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3 with 128 bits: detects corruption by disks, memory and networks at the speed of memory.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;

  Xxh3& update(std::span<const std::byte> bytes);
  std::string hex() const;  // 32 lower-case digits of the bytes so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t xxh3_64(std::string_view bytes, std::uint64_t seed = 0);

}  // namespace scaletrain::core
