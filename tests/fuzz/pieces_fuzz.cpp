// Any bytes as a SentencePiece model: refused, or the library loads and uses it within its memory.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/tokenizer/sentence_pieces.h"
#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "tests/fuzz/fuzz.h"

namespace {

// A field of a protobuf message with fewer than 16,384 bytes.
std::string field(int number, const std::string& bytes) {
  std::string result(1, static_cast<char>(number << 3 | 2));
  if (bytes.size() >= 128) result += static_cast<char>((bytes.size() & 127U) | 128U);
  result += static_cast<char>(bytes.size() >= 128 ? bytes.size() >> 7U : bytes.size());
  return result + bytes;
}

std::string piece(const std::string& text, int type) {
  return field(1, field(1, text) + "\x15" + std::string("\0\0\x80\xbf", 4) + "\x18" +
                      static_cast<char>(type));
}

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// The rule that makes "A" an "a": a root whose children are from unit 256 on, and one child, whose
// value is unit 257.
std::string rules() {
  constexpr std::uint32_t kHasValue = 1U << 8U, kBlock = 256;
  std::string trie;
  for (std::uint32_t i = 0; i < 2 * kBlock; ++i) {
    std::uint32_t unit = 1U << 31U;  // the offset of a string, which no byte leads to
    if (i == 0) unit = kBlock << 10U;
    if (i == kBlock + 'A') unit = std::uint32_t{'A' ^ 1U} << 10U | kHasValue | 'A';
    trie += little_endian(unit);
  }
  return little_endian(static_cast<std::uint32_t>(trie.size())) + trie + std::string("a\0", 2);
}

std::string model(int kind) {
  std::string pieces = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);
  for (const char* const text : {"\xe2\x96\x81", "a", "b", "ab",
                                 "\xe2\x96\x81"
                                 "a"}) {
    pieces += piece(text, 1);
  }
  const std::string trainer = std::string("\x18") + static_cast<char>(kind);
  return pieces + piece("aa", 4) + piece("aaa", 4) + field(2, trainer) +
         field(3, field(1, "rules") + field(2, rules()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const scaletrain::core::Descriptor file(::memfd_create("pieces", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    const auto tokenizer =
        scaletrain::app::load_sentence_pieces(fmt::format("/proc/self/fd/{}", file.get()));
    for (const std::uint32_t token : tokenizer->encode("A ab aaab \xc3\xa9 \xff AAAA")) {
      static_cast<void>(tokenizer->bytes_of(token));
    }
  } catch (const scaletrain::core::Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() { return {model(1), model(2)}; }  // unigram, BPE
