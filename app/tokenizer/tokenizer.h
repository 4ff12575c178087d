// Text to tokens, and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::app {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The tokens of one document, without the one that ends it; any thread. Unless takes_any_bytes(),
  // `text` has to be UTF-8.
  virtual std::vector<std::uint32_t> encode(std::string_view text) const = 0;
  virtual bool takes_any_bytes() const { return false; }

  // Bytes of a token within a text, maybe a part of a character; "" for an invalid token or one
  // without text (the end of a document). Any thread.
  virtual std::string bytes_of(std::uint32_t token) const = 0;

  virtual std::uint32_t vocab_size() const = 0;
  virtual std::uint32_t end_of_text() const = 0;
  virtual std::string name() const = 0;  // for NAME.tokens.json
};

// True if encode() puts a blank before a document's first word: the text of a whole document's
// tokens then begins with it.
bool adds_blank(const Tokenizer& tokenizer);

// Tokenizers that make_tokenizer() accepts, for help and errors.
inline constexpr const char* kTokenizers =
    "bytes: a token for each byte; NAME.model: SentencePiece's; tokenizer.json, or its folder: "
    "byte-pair tokenizers of Hugging Face; a folder with vocab.json and merges.txt: GPT-2's";

// Opens a SentencePiece model: load_sentence_pieces() of scaletrain::sentencepiece, in programs
// with LibTorch by app/tokenizer/pieces_library.h.
using LoadSentencePieces = std::unique_ptr<Tokenizer> (*)(const std::filesystem::path& path);

// `what` is "bytes", a tokenizer.json of Hugging Face, a folder that has one or GPT-2's vocab.json
// and merges.txt, or a SentencePiece model. `end_of_text` is the text of the token that ends a
// document; "": the tokenizer's own. `sentence_pieces` opens SentencePiece's. Throws
// core::DataError for what is damaged, not supported or has no such token, and core::UsageError for
// an `end_of_text` where there is no choice.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& what, const std::string& end_of_text,
                                          LoadSentencePieces sentence_pieces);

}  // namespace scaletrain::app
