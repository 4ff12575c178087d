#include "lib/recipe/remote_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/core/text/glob.h"
#include "lib/core/text/url.h"
#include "lib/recipe/catalog/local_shards.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

using ShardsOf = std::function<std::vector<std::string>(const std::string&)>;

bool is_pattern(std::string_view name) { return name.find('*') != std::string_view::npos; }

bool is_group(const std::string& name, bool is_alone) {
  return may_be_remote_group(name) && (is_alone || is_pattern(name) || name.ends_with('/'));
}

bool replace_groups(Source& source, const ShardsOf& shards_of) {
  bool has_replaced = false;
  std::vector<std::string> shards;
  for (const std::string& name : source.shards) {
    if (!is_group(name, source.shards.size() == 1)) {
      shards.push_back(name);
      continue;
    }
    const std::vector<std::string> found = shards_of(name);
    shards.insert(shards.end(), found.begin(), found.end());
    has_replaced = true;
  }
  if (has_replaced) source.shards = std::move(shards);
  for (Source& one : source.sources) has_replaced |= replace_groups(one, shards_of);
  return has_replaced;
}

}  // namespace

bool may_be_remote_group(const std::string& name) {
  const std::string_view scheme = core::url_scheme(name);
  return (scheme == "s3" || scheme == "gs") && (is_pattern(name) || !is_shard_name(name));
}

std::vector<std::string> remote_shards(const std::string& name, const ListObjects& list,
                                       std::string& mistake) {
  const std::size_t slash = name.rfind('/');
  const bool has_pattern = is_pattern(name);
  const std::string folder = has_pattern || name.ends_with('/') ? name.substr(0, slash) : name;
  const std::string pattern = name.substr(slash + 1);
  const std::vector<std::string> objects = list(folder);
  std::vector<std::string> shards;
  for (const std::string& object : objects) {
    const bool fits = has_pattern ? core::matches(pattern, object) : is_shard_name(object);
    if (fits && !object.starts_with('.')) shards.push_back(fmt::format("{}/{}", folder, object));
  }
  std::sort(shards.begin(), shards.end());
  if (!shards.empty()) return shards;
  if (has_pattern) {
    mistake = fmt::format("\"{}\" fits no object", core::shown_path(name));
  } else if (!objects.empty() || name.ends_with('/')) {
    mistake = fmt::format("\"{}\" is a folder without a .tar", core::shown_path(name));
  } else {
    return {name};
  }
  return {};
}

bool replace_remote_groups(Recipe& recipe, const ShardsOf& shards_of) {
  bool has_replaced = replace_groups(recipe.data.train, shards_of);
  for (const auto& [name, source] : held_out(recipe.data)) {
    has_replaced |= replace_groups(*source, shards_of);
  }
  return has_replaced;
}

}  // namespace scaletrain::recipe
