#include "lib/recipe/agreed.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/text/compressed_name.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/url.h"
#include "lib/recipe/describe.h"

namespace scaletrain::recipe {
namespace {

constexpr std::size_t kLongest = 60;  // bytes of a value that is shown in full

void forget_places(Source& source) {
  std::transform(source.shards.begin(), source.shards.end(), source.shards.begin(), core::tar_name);
  std::transform(source.tokens.begin(), source.tokens.end(), source.tokens.begin(),
                 [](const std::string& file) { return core::base_name(file); });
  source.folder.clear();
  std::for_each(source.sources.begin(), source.sources.end(), forget_places);
}

// The recipe without the keys that may differ between hosts.
Recipe common_part(Recipe recipe) {
  const Data any;
  recipe.description.clear();
  forget_places(recipe.data.train);
  for (const auto& [name, source] : held_out(recipe.data)) forget_places(*source);
  recipe.data.threads = any.threads;
  recipe.data.search_threads = any.search_threads;
  recipe.data.prefetch = any.prefetch;
  recipe.data.index_cache = any.index_cache;
  recipe.data.cache = any.cache;
  recipe.storage = Storage();
  if (recipe.offload) recipe.offload->optimizer_folder.clear();
  recipe.log.port = Log().port;
  recipe.log.textfile_folder.clear();
  recipe.threads = 0;
  recipe.worker.clear();
  recipe.output.clear();
  return recipe;
}

std::string shown(const Json& value) {
  // ASCII only, so that it can be cut at any byte.
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() <= kLongest) return text;
  return fmt::format("{}... (digest {:016x})", text.substr(0, kLongest), core::xxh3_64(text));
}

void collect(const Json& value, const std::string& key, AgreedValues& result) {
  if (!value.is_object()) {
    if (!value.is_null()) result[key] = shown(value);
    return;
  }
  for (const auto& [name, member] : value.items()) {
    collect(member, key.empty() ? name : fmt::format("{}.{}", key, name), result);
  }
}

}  // namespace

AgreedValues agreed_values(const Recipe& recipe) {
  Recipe common = common_part(recipe);
  AgreedValues result;
  collect(describe(common)->write(), "", result);
  return result;
}

std::optional<std::string> first_difference(const AgreedValues& own, const AgreedValues& other) {
  const auto of = [](const AgreedValues& values, const std::string& key) -> std::string {
    const auto found = values.find(key);
    return found == values.end() ? "unset" : found->second;
  };
  AgreedValues all = own;
  all.insert(other.begin(), other.end());
  for (const auto& [key, value] : all) {
    const std::string here = of(own, key), there = of(other, key);
    if (here != there) return fmt::format("{} is {}, not {}", key, here, there);
  }
  return std::nullopt;
}

}  // namespace scaletrain::recipe
