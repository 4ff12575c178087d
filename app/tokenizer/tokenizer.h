// Interface of tokenizers: text to tokens and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::app {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Returns the tokens of one document, without the one that ends it; any thread. `text` must be
  // UTF-8 unless takes_any_bytes().
  virtual std::vector<std::uint32_t> encode(std::string_view text) const = 0;
  virtual bool takes_any_bytes() const { return false; }

  // Bytes of a token within a text, maybe a part of a character; "" for an invalid token or one
  // without text (the end of a document). Any thread.
  virtual std::string bytes_of(std::uint32_t token) const = 0;

  virtual std::uint32_t vocab_size() const = 0;
  virtual std::uint32_t end_of_text() const = 0;
  virtual std::string name() const = 0;  // for NAME.tokens.json
};

// True if encode() puts a blank before a document's first word: decoded documents then start with
// it.
bool adds_blank(const Tokenizer& tokenizer);

}  // namespace scaletrain::app
