// Digests that object stores require.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace scaletrain::storage {

// Returns the HMAC-SHA-256 (RFC 2104) as 32 raw bytes.
std::string hmac_sha256(std::string_view key, std::string_view text);

// MD5, as in the ETag of an object uploaded in one part.
class Md5 {
 public:
  Md5();
  ~Md5();
  Md5(const Md5&) = delete;
  Md5& operator=(const Md5&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string hex();  // 32 lower-case digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scaletrain::storage
