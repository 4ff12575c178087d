#include "app/data/files/card.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/data/files/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"
#include "lib/format/json_fields.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMaxCardBytes = 64 << 20;

}  // namespace

std::map<std::string, std::string> card_hashes(const storage::Stores& stores,
                                               const std::string& folder) {
  const std::string path = file_in(folder, kCardFile), place = core::shown_path(path);
  const auto text = storage::read_if_there(stores.of(path), path, kMaxCardBytes);
  if (!text) return {};
  const nlohmann::json json = format::parse_object(*text, place);
  format::JsonFields fields(json, place);
  const nlohmann::json& shards = fields.value("shards");
  if (!shards.is_array()) {
    throw core::DataError(place + ": /shards", "is not a list",
                          "write the card again: scaletrain data card");
  }
  std::map<std::string, std::string> hashes;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    format::JsonFields shard(shards[i], place, fmt::format("/shards/{}", i));
    hashes[shard.text("name")] = shard.text("sha256");
  }
  return hashes;
}

}  // namespace scaletrain::app
