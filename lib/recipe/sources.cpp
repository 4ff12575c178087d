#include "lib/recipe/sources.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

constexpr std::size_t kMostNamed = 10;

enum class Kind { kFile, kFolder, kEither };

// Returns why `path` is not a readable file or folder; "" if it is.
std::string fault(const std::string& path, Kind kind) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0) {
    return core::errno_text(errno);
  }
  if (kind == Kind::kEither) return "";
  if (kind == Kind::kFolder) return S_ISDIR(status.st_mode) ? "" : "not a folder";
  return S_ISREG(status.st_mode) ? "" : "not a regular file";
}

struct Missing {
  std::string pointer, path, reason;
};

void collect(const Model& model, std::vector<Missing>& missing) {
  const Row* const row = model.catalog->models.find(model.name);
  if (row == nullptr) return;
  for (const Option& option : row->options) {
    if (!option.is_path()) continue;
    const std::string& path = model.text(option.key);
    std::string reason = fault(path, Kind::kFile);
    if (!reason.empty()) missing.push_back({"/model/" + option.key, path, std::move(reason)});
  }
}

void collect(const Source& source, const std::string& pointer, std::vector<Missing>& missing) {
  const auto look_at = [&](const std::string& path, const char* key, Kind kind) {
    if (core::is_url(path)) return;
    std::string reason = fault(path, kind);
    if (!reason.empty()) missing.push_back({pointer + key, path, std::move(reason)});
  };
  for (const std::string& shard : source.shards) look_at(shard, "/shards", Kind::kFile);
  for (const std::string& file : source.tokens) look_at(file, "/tokens", Kind::kFile);
  if (!source.folder.empty()) look_at(source.folder, "/folder", Kind::kFolder);
  for (std::size_t i = 0; i < source.sources.size(); ++i) {
    collect(source.sources[i], fmt::format("{}/sources/{}", pointer, i), missing);
  }
}

void refuse(const std::vector<Missing>& missing) {
  if (missing.empty()) return;
  std::string others;
  for (std::size_t i = 1; i < missing.size() && i < kMostNamed; ++i) {
    others += fmt::format("\n{}: {}: {}", missing[i].pointer, core::printable(missing[i].path),
                          missing[i].reason);
  }
  if (missing.size() > kMostNamed)
    others += fmt::format("\nand {} more", missing.size() - kMostNamed);
  throw core::DataError(
      fmt::format("{}: {}", missing[0].pointer, core::printable(missing[0].path)),
      missing[0].reason,
      "make the files, or correct the path; paths are relative to the working directory" + others);
}

}  // namespace

void check_sources(const Recipe& recipe) {
  std::vector<Missing> missing;
  collect(recipe.model, missing);
  collect(recipe.data.train, "/data/train", missing);
  for (const auto& [name, source] : held_out(recipe.data)) {
    collect(*source, fmt::format("/data/{}", name), missing);
  }
  refuse(missing);
}

void check_weights(const Recipe& recipe) {
  if (!recipe.model.weights) return;
  const std::string& path = recipe.model.weights->path;
  std::string reason = fault(path, Kind::kEither);
  if (!reason.empty()) refuse({{"/model/weights/path", path, std::move(reason)}});
}

}  // namespace scaletrain::recipe
