// Text to tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::app {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The tokens of one document, without the one that ends it; any thread.
  virtual std::vector<std::uint32_t> encode(std::string_view text) const = 0;
  virtual std::uint32_t vocab_size() const = 0;
  virtual std::uint32_t end_of_text() const = 0;
  virtual std::string name() const = 0;  // for NAME.tokens.json
};

// "bytes", or the path of a SentencePiece model. Throws core::DataError for a damaged model or one
// without an end-of-sentence token.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& what);

}  // namespace scaletrain::app
