#include "lib/core/text/compressed_name.h"

#include <array>

#include "lib/core/text/url.h"

namespace scaletrain::core {
namespace {

struct Ending {
  std::string_view text;
  std::size_t kept;  // characters of the ending that belong to the tar's name
};

constexpr std::array<Ending, 3> kEndings{{{".tar.gz", 4}, {".tar.zst", 4}, {".tgz", 0}}};

const Ending* ending_of(std::string_view path) {
  for (const Ending& ending : kEndings) {
    if (path.ends_with(ending.text)) return &ending;
  }
  return nullptr;
}

}  // namespace

bool is_compressed(std::string_view path) {  // called for every shard of long lists
  const std::string_view scheme = url_scheme(path);
  if (scheme == "pipe") return false;
  if (scheme == "http" || scheme == "https") path = path.substr(0, path.find_first_of("?#"));
  return ending_of(path) != nullptr;
}

std::string tar_name(std::string_view path) {
  std::string name = base_name(path);
  if (!is_compressed(path)) return name;
  const Ending& ending = *ending_of(name);
  name.resize(name.size() - ending.text.size() + ending.kept);
  return ending.kept == 0 ? name + ".tar" : name;
}

}  // namespace scaletrain::core
