#include "lib/format/checkpoint/piece_table.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kTensorsPointer = "/tensors";
constexpr const char* kDtypeKey = "dtype";
constexpr const char* kShapeKey = "shape";
constexpr const char* kPiecesKey = "pieces";
constexpr const char* kBeginKey = "begin";  // start of a shard
constexpr const char* kSizeKey = "size";
constexpr const char* kRangeKey = "range";
constexpr const char* kFileKey = "file";
constexpr const char* kOffsetKey = "offset";

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

OrderedJson to_json(const StoredPiece& stored) {
  return {{kBeginKey, stored.piece.begin},
          {kSizeKey, stored.piece.size},
          {kRangeKey, {stored.piece.first, stored.piece.last}},
          {kFileKey, stored.file},
          {kOffsetKey, stored.offset}};
}

OrderedJson to_json(const CutTensor& tensor) {
  OrderedJson pieces = OrderedJson::array();
  for (const StoredPiece& stored : tensor.pieces) pieces.push_back(to_json(stored));
  return {{kDtypeKey, tensor.dtype}, {kShapeKey, tensor.shape}, {kPiecesKey, pieces}};
}

std::vector<std::int64_t> integers(JsonFields& fields, const char* key, const std::string& place) {
  std::vector<std::int64_t> result;
  const nlohmann::json& list = fields.value(key);
  bool is_sound = list.is_array();
  for (const nlohmann::json& one : list) {
    is_sound = is_sound && one.is_number_unsigned() &&
               one.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
    if (is_sound) result.push_back(one.get<std::int64_t>());
  }
  if (is_sound) return result;
  throw core::CheckpointError(fmt::format("{}/{}", place, key),
                              "is not a list of whole numbers from 0 to 2^63 - 1",
                              kOtherCheckpoint);
}

StoredPiece parse_piece(const nlohmann::json& json, const std::string& place,
                        const std::string& pointer) {
  JsonFields fields(json, place, pointer);
  const std::string here = fmt::format("{}: {}", place, pointer);
  StoredPiece stored;
  stored.piece.begin = integers(fields, kBeginKey, here);
  stored.piece.size = integers(fields, kSizeKey, here);
  const std::vector<std::int64_t> range = integers(fields, kRangeKey, here);
  if (range.size() != 2) {
    throw core::CheckpointError(fmt::format("{}/{}", here, kRangeKey),
                                fmt::format("has {} numbers, where 2 are expected", range.size()),
                                kOtherCheckpoint);
  }
  stored.piece.first = range[0];
  stored.piece.last = range[1];
  stored.file = fields.text(kFileKey);
  stored.offset = fields.integer(kOffsetKey, 0);
  fields.done();
  return stored;
}

CutTensor parse_tensor(const nlohmann::json& json, const std::string& place,
                       const std::string& pointer) {
  JsonFields fields(json, place, pointer);
  CutTensor tensor;
  tensor.dtype = fields.text(kDtypeKey);
  tensor.shape = integers(fields, kShapeKey, fmt::format("{}: {}", place, pointer));
  const nlohmann::json& pieces = fields.value(kPiecesKey);
  fields.done();
  const std::string pieces_pointer = fmt::format("{}/{}", pointer, kPiecesKey);
  if (!pieces.is_array()) {
    throw core::CheckpointError(fmt::format("{}: {}", place, pieces_pointer), "is not a list",
                                kOtherCheckpoint);
  }
  tensor.pieces.reserve(pieces.size());
  for (const nlohmann::json& piece : pieces) {
    tensor.pieces.push_back(
        parse_piece(piece, place, fmt::format("{}/{}", pieces_pointer, tensor.pieces.size())));
  }
  return tensor;
}

}  // namespace

std::string render_tables(const PieceTables& tables) {
  std::string text = "{";
  for (const auto& [file, table] : tables) {
    text += fmt::format("{}\n  {}: {{", text.size() > 1 ? "," : "", json_string(file));
    const char* separator = "";
    for (const auto& [name, tensor] : table) {
      text += fmt::format("{}\n   {}: {}", separator, json_string(name), to_json(tensor).dump());
      separator = ",";
    }
    text += "}";
  }
  return text + "}";
}

PieceTables parse_tables(const nlohmann::json& json, const std::string& place) {
  PieceTables tables;
  // Throws if it is not an object.
  [[maybe_unused]] const JsonFields checked(json, place, kTensorsPointer);
  for (const auto& table : json.items()) {
    const std::string pointer = fmt::format("{}/{}", kTensorsPointer, core::printable(table.key()));
    [[maybe_unused]] const JsonFields checked_table(table.value(), place, pointer);
    PieceTable& read = tables[table.key()];
    for (const auto& tensor : table.value().items()) {
      read.emplace(tensor.key(),
                   parse_tensor(tensor.value(), place,
                                fmt::format("{}/{}", pointer, core::printable(tensor.key()))));
    }
  }
  return tables;
}

void merge_tables(PieceTables& tables, const PieceTables& more) {
  for (const auto& [file, table] : more) {
    for (const auto& [name, tensor] : table) {
      CutTensor& merged =
          tables[file].emplace(name, CutTensor{tensor.dtype, tensor.shape}).first->second;
      if (merged.dtype != tensor.dtype || merged.shape != tensor.shape) {
        throw core::InternalError(
            "merge_tables", fmt::format("the ranks have other shapes of the tensor {}", name));
      }
      merged.pieces.insert(merged.pieces.end(), tensor.pieces.begin(), tensor.pieces.end());
    }
  }
}

}  // namespace scaletrain::format
