#include "app/tokenizer/pieces_library.h"

#include "app/tokenizer/sentence_pieces.h"

const scaletrain::app::PiecesLibrary* scaletrain_pieces_library() {
  static const scaletrain::app::PiecesLibrary library{.load =
                                                          scaletrain::app::load_sentence_pieces};
  return &library;
}
