#include "lib/core/text/hash.h"

// The low-level functions keep the launcher small (third_party/CMakeLists.txt).
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

#include "lib/core/text/text.h"

namespace scaletrain::core {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
  return *this;
}

Sha256& Sha256::update(std::string_view bytes) { return update(std::as_bytes(std::span(bytes))); }

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), &state_->context);
  return core::hex(std::as_bytes(std::span(digest)));
}

struct Xxh3::State {
  XXH3_state_t context;  // needs an alignment of 64 bytes, which new provides
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->context); }
Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;

Xxh3& Xxh3::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->context, bytes.data(), bytes.size());
  return *this;
}

std::string Xxh3::hex() const {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state_->context));
  return core::hex(std::as_bytes(std::span(digest.digest)));
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t xxh3_64(std::string_view bytes, std::uint64_t seed) {
  return xxh3_64(std::as_bytes(std::span(bytes)), seed);
}

}  // namespace scaletrain::core
