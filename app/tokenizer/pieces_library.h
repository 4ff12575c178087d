// Loads SentencePiece in a program with LibTorch: libscaletrain_pieces.so, only when such a model
// is used, with its own symbols first. SentencePiece and LibTorch both define a global
// FLAGS_minloglevel with different types.
#pragma once

#include <filesystem>
#include <memory>

#include "app/tokenizer/tokenizer.h"

namespace scaletrain::app {

struct PiecesLibrary {
  std::unique_ptr<Tokenizer> (*load)(const std::filesystem::path& path);  // load_sentence_pieces()
};

}  // namespace scaletrain::app

// The library's one symbol.
extern "C" const scaletrain::app::PiecesLibrary* scaletrain_pieces_library();
