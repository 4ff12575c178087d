#include "app/data/card.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/format/json_fields.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMaxCardBytes = 64 << 20;

}  // namespace

std::map<std::string, std::string> card_hashes(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / kCardFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const nlohmann::json json = format::parse_object(
      core::read_file(path, kMaxCardBytes, core::ExitCode::kData), path.string());
  format::JsonFields fields(json, path.string());
  const nlohmann::json& shards = fields.value("shards");
  std::map<std::string, std::string> hashes;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    format::JsonFields shard(shards[i], path.string(), fmt::format("/shards/{}", i));
    hashes[shard.text("name")] = shard.text("sha256");
  }
  return hashes;
}

}  // namespace scaletrain::app
