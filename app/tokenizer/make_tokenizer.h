// Opens a tokenizer by its name or file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "app/tokenizer/tokenizer.h"

namespace scaletrain::app {

// Tokenizers that make_tokenizer() accepts, for help and errors.
inline constexpr const char* kTokenizers =
    "bytes: a token for each byte; NAME.model: SentencePiece's; tokenizer.json, or its folder: "
    "byte-pair tokenizers of Hugging Face; a folder with vocab.json and merges.txt: GPT-2's";

// Opens a SentencePiece model: load_sentence_pieces() of scaletrain::sentencepiece, in programs
// with LibTorch by app/tokenizer/pieces_library.h.
using LoadSentencePieces = std::unique_ptr<Tokenizer> (*)(const std::filesystem::path& path);

// `what`: "bytes", a tokenizer.json of Hugging Face, a folder with one or with GPT-2's vocab.json
// and merges.txt, or a SentencePiece model. `end_of_text`: text of the token that ends a document;
// "": the tokenizer's own. `sentence_pieces` opens SentencePiece models. Throws core::DataError for
// damaged or unsupported files or a missing token, and core::UsageError for an `end_of_text` if the
// tokenizer has no choice.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& what, const std::string& end_of_text,
                                          LoadSentencePieces sentence_pieces);

}  // namespace scaletrain::app
