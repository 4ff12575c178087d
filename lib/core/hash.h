// SHA-256 for what must be trusted, XXH3-64 for what must be fast.
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

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t xxh3_64(std::string_view bytes, std::uint64_t seed = 0);

}  // namespace scaletrain::core
