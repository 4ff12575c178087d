#include "app/tokenizer/piece_model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "app/tokenizer/protobuf_fields.h"
#include "app/tokenizer/rule_trie.h"
#include "app/tokenizer/utf8.h"
#include "lib/core/error.h"

namespace scaletrain::app {
namespace {

// Numbers of fields in sentencepiece_model.proto.
constexpr std::uint32_t kPieces = 1, kNormalizer = 3, kDenormalizer = 5;  // ModelProto
constexpr std::uint32_t kPieceText = 1, kPieceScore = 2, kPieceType = 3;  // SentencePiece
constexpr std::uint32_t kCharsMap = 2;                                    // NormalizerSpec
constexpr std::int32_t kUserDefined = 4, kByte = 6;                       // types of a piece
// The library's buffer for the user-defined pieces that are prefixes of one text.
constexpr std::size_t kMostPrefixes = 64;

[[noreturn]] void refuse_model(const std::string& place, const std::string& found) {
  throw core::DataError(place, found, "copy the model again from where it was trained");
}

struct Piece {
  std::string_view text;
  std::int32_t type = 1;
};

Piece checked_piece(std::string_view message, const std::string& place) {
  Piece piece;
  float score = 0;
  ProtobufFields fields(message);
  while (const auto field = fields.next()) {
    if (field->number == kPieceText && field->is_bytes()) piece.text = field->bytes;
    if (field->number == kPieceScore && field->is_fixed32()) {
      score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
    }
    if (field->number == kPieceType && field->is_varint()) {
      piece.type = static_cast<std::int32_t>(static_cast<std::uint32_t>(field->value));
    }
  }
  if (fields.damaged()) refuse_model(place, "is not a field of a piece");
  if (piece.text.empty()) refuse_model(place, "has no text");
  if (piece.text.find('\0') != std::string_view::npos) refuse_model(place, "has a zero byte");
  if (!std::isfinite(score)) refuse_model(place, fmt::format("has the score {}", score));
  if (piece.type == kByte && !byte_of_name(piece.text)) {
    refuse_model(place, "is of type BYTE, and no byte such as <0x0A>");
  }
  return piece;
}

void check_prefixes(std::vector<std::string_view> texts, const std::string& place) {
  std::sort(texts.begin(), texts.end());
  std::vector<std::string_view> prefixes;  // each is a prefix of the next one
  for (const std::string_view text : texts) {
    while (!prefixes.empty() && !text.starts_with(prefixes.back())) prefixes.pop_back();
    prefixes.push_back(text);
    if (prefixes.size() <= kMostPrefixes) continue;
    refuse_model(
        place, fmt::format("has more than {} user-defined pieces that are prefixes of one another",
                           kMostPrefixes));
  }
}

void check_normalizer(std::string_view message, const std::string& place) {
  ProtobufFields fields(message);
  while (const auto field = fields.next()) {
    if (field->number != kCharsMap || !field->is_bytes()) continue;
    if (const auto damage = damage_of_rules(field->bytes)) {
      refuse_model(place + "/precompiled_charsmap", *damage);
    }
  }
  if (fields.damaged()) refuse_model(place, "is not a protobuf message");
}

}  // namespace

void check_piece_model(std::string_view model, const std::string& place) {
  ProtobufFields fields(model);
  std::vector<std::string_view> user_defined;
  std::size_t pieces = 0;
  while (const auto field = fields.next()) {
    if (!field->is_bytes()) continue;
    if (field->number == kPieces) {
      const Piece piece =
          checked_piece(field->bytes, fmt::format("{}: /pieces/{}", place, pieces++));
      if (piece.type == kUserDefined) user_defined.push_back(piece.text);
    } else if (field->number == kNormalizer) {
      check_normalizer(field->bytes, place + ": /normalizer_spec");
    } else if (field->number == kDenormalizer) {
      check_normalizer(field->bytes, place + ": /denormalizer_spec");
    }
  }
  if (fields.damaged()) {
    throw core::DataError(
        place,
        fmt::format("is not a SentencePiece model: there is no valid field at byte {}",
                    fields.at()),
        kPieceModelRemedy);
  }
  check_prefixes(std::move(user_defined), place + ": /pieces");
}

}  // namespace scaletrain::app
