// Checks a SentencePiece model before the library reads it.
//
// The library trusts the trie of `precompiled_charsmap`, the scores and the number of pieces that
// are prefixes of each other: a damaged model makes it read outside its memory.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

// Advice in errors about a file that is not a model.
inline constexpr const char* kPieceModelRemedy =
    "name a .model file, a tokenizer.json, a folder with vocab.json and merges.txt, or bytes";

// `model`: a serialized ModelProto; `place`: its path. Returns normally if the library can load it
// without reading outside of `model`; it may still refuse it. Throws core::DataError with the place
// of the damage: protobuf's wire format, /pieces, or the precompiled_charsmap of a normalizer.
void check_piece_model(std::string_view model, const std::string& place);

}  // namespace scaletrain::app
