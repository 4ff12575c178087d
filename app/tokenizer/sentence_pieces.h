// Loads SentencePiece models.
#pragma once

#include <filesystem>
#include <memory>

#include "app/tokenizer/tokenizer.h"

namespace scaletrain::app {

// Throws core::DataError for a damaged model or one without an end-of-sentence token.
std::unique_ptr<Tokenizer> load_sentence_pieces(const std::filesystem::path& path);

}  // namespace scaletrain::app
