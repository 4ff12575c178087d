#include "app/tokenizer/make_tokenizer.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "app/tokenizer/bpe_files.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::app {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::vector<std::uint32_t> encode(std::string_view text) const override {
    std::vector<std::uint32_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  bool takes_any_bytes() const override { return true; }
  std::string bytes_of(std::uint32_t token) const override {
    return token < kEnd ? std::string(1, static_cast<char>(token)) : "";
  }
  std::uint32_t vocab_size() const override { return kEnd + 1; }
  std::uint32_t end_of_text() const override { return kEnd; }
  std::string name() const override { return "bytes"; }

 private:
  static constexpr std::uint32_t kEnd = 256;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& what, const std::string& end_of_text,
                                          LoadSentencePieces sentence_pieces) {
  const std::filesystem::path path(what);
  if (path.extension() == ".json" || std::filesystem::is_directory(path)) {
    return load_bpe_tokenizer(path, end_of_text);
  }
  if (!end_of_text.empty()) {
    throw core::UsageError("--end-of-text", "is for a tokenizer.json",
                           "leave it out: this tokenizer has one token for it");
  }
  if (what == "bytes") return std::make_unique<ByteTokenizer>();
  if (!std::filesystem::exists(path)) {
    throw core::DataError("--tokenizer",
                          fmt::format("\"{}\" is neither a tokenizer's name nor a file", what),
                          fmt::format("use one of: {}", kTokenizers));
  }
  core::refuse_placeholder_file(what);
  return sentence_pieces(path);
}

}  // namespace scaletrain::app
