#include "lib/storage/digest.h"

// The low-level functions, as in lib/core/text/hash.cpp.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

#include <array>

#include "lib/core/text/text.h"

namespace scaletrain::storage {
namespace {

std::string sha256(std::string_view first, std::string_view second) {
  SHA256_CTX context;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Init(&context);
  SHA256_Update(&context, first.data(), first.size());
  SHA256_Update(&context, second.data(), second.size());
  SHA256_Final(digest.data(), &context);
  return {digest.begin(), digest.end()};
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string block = key.size() > SHA256_CBLOCK ? sha256(key, "") : std::string(key);
  block.resize(SHA256_CBLOCK, '\0');
  std::string inner = block;
  std::string outer = block;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return sha256(outer, sha256(inner, text));
}

struct Md5::State {
  MD5_CTX context;
};

Md5::Md5() : state_(std::make_unique<State>()) { MD5_Init(&state_->context); }
Md5::~Md5() = default;

void Md5::update(std::span<const std::byte> bytes) {
  MD5_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Md5::hex() {
  std::array<unsigned char, MD5_DIGEST_LENGTH> digest{};
  MD5_Final(digest.data(), &state_->context);
  return core::hex(std::as_bytes(std::span(digest)));
}

}  // namespace scaletrain::storage
