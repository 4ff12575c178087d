#include "lib/recipe/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/home.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/catalog/registry.h"
#include "lib/recipe/checks.h"
#include "lib/recipe/describe.h"
#include "lib/recipe/merge.h"
#include "lib/recipe/schema/json_text.h"

namespace scaletrain::recipe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostExtends = 16;

std::string read_recipe_file(const fs::path& path, const std::string& place) {
  try {
    return core::read_file(path, kMaxRecipeBytes, core::ExitCode::kUsage);
  } catch (const core::Error& error) {
    throw core::RecipeError(core::printable(place), error.found(), error.remedy());
  }
}

// Returns the JSON tree of `text` merged on top of the files that it extends. `files`: files being
// read, each extended by the one before. `keys`: the keys of a recipe.
Node read_tree(const std::string& text, const std::string& name, const Object& keys,
               std::vector<std::string>& files) {
  auto source = std::make_shared<SourceText>();
  source->name = name;
  source->order = static_cast<int>(files.size());
  core::refuse_placeholder<core::RecipeError>(core::printable(name), text);
  Node tree = parse_json_text(text, source);
  const Node* const extends = tree.member("extends");
  if (extends == nullptr) return tree;

  const std::string place = core::printable(fmt::format("{}:{}: /extends", name, extends->line));
  if (extends->text() == nullptr) {
    throw core::RecipeError(place, extends->shown() + " is not a text",
                            "use a path relative to this file");
  }
  files.push_back(absolute_path(name));
  const fs::path base_path = fs::path(name).parent_path() / core::expand_home(*extends->text());
  const std::string base_file = absolute_path(base_path.string());
  if (std::find(files.begin(), files.end(), base_file) != files.end()) {
    throw core::RecipeError(place, in_quotes(*extends->text()) + " extends this file in turn",
                            "remove one of the extends");
  }
  if (files.size() > kMostExtends) {
    throw core::RecipeError(place,
                            fmt::format("more than {} recipes in a chain of extends", kMostExtends),
                            "merge some of them");
  }
  const std::string base_text =
      read_recipe_file(base_path, fmt::format("{}: {}", place, in_quotes(base_path.string())));
  Node base = read_tree(base_text, base_path.lexically_normal().string(), keys, files);
  std::get<Node::Object>(tree.value).erase("extends");
  merge(base, std::move(tree), keys);
  return base;
}

// Returns the catalog of the recipe's worker. A worker that is not a path is reported later, when
// all keys are read.
CatalogPtr catalog_for(const Node& tree) {
  const Node* const worker = tree.member("worker");
  const std::string* const path = worker == nullptr ? nullptr : worker->text();
  if (path == nullptr || path->empty() || core::is_url(*path)) return built_in_catalog();
  const std::string program = absolute_path(*path);
  if (core::find_program(program)) return catalog_of(program);
  const std::string line = worker->source->has_lines ? fmt::format(":{}", worker->line) : "";
  throw core::RecipeError(core::printable(fmt::format("{}{}: /worker", worker->source->name, line)),
                          in_quotes(*path) + " is not an executable file",
                          "name a worker program, here or by --worker PATH");
}

// Returns the file's name without ".json", with characters that a run's name cannot have replaced.
std::string name_of_file(const std::string& file) {
  std::string name = fs::path(file).stem().string();
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  name = name.substr(0, 100);
  name.erase(0, std::min(name.find_first_not_of(".-"), name.size()));
  return name.empty() ? "run" : name;
}

void add_origins(const Node& node, const std::string& pointer,
                 std::map<std::string, std::string>& origins) {
  if (node.object() == nullptr) {
    origins[pointer] = node.source->has_lines ? fmt::format("{}:{}", node.source->name, node.line)
                                              : node.source->name;
    return;
  }
  for (const auto& [name, value] : *node.object()) {
    add_origins(value, child_pointer(pointer, name), origins);
  }
}

Json plain_json(const Node& node) {
  if (const Node::Object* const object = node.object()) {
    Json result = Json::object();
    for (const auto& [name, member] : *object) result[name] = plain_json(member);
    return result;
  }
  if (const Node::Array* const items = node.array()) {
    Json result = Json::array();
    for (const Node& item : *items) result.push_back(plain_json(item));
    return result;
  }
  if (const std::string* const text = node.text()) return *text;
  if (const auto* const flag = std::get_if<bool>(&node.value)) return *flag;
  if (const auto* const whole = std::get_if<std::int64_t>(&node.value)) return *whole;
  if (const auto* const real = std::get_if<double>(&node.value)) return *real;
  return {};
}

// Returns the tree of a recipe file with `overrides` applied.
Node written_tree(const fs::path& path, const std::vector<std::string>& overrides) {
  std::vector<std::string> files;
  Recipe blank = blank_recipe();
  const std::unique_ptr<Object> known = describe(blank);
  Node tree = read_tree(read_recipe_file(path, path.string()), path.string(), *known, files);
  apply_overrides(tree, overrides, *known);
  return tree;
}

// Called before the checks between keys, which compare the sequence length.
void fill_in_context(Recipe& recipe, const Problems& problems) {
  if (!problems.none_at_root() || !problems.none_under("/model")) return;
  if (reads_tokens(recipe.model) && recipe.data.context == 0) {
    recipe.data.context = recipe.model.integer("positions");
  }
}

// Fills in the defaults that depend on other keys.
void fill_in(Recipe& recipe, const std::string& file) {
  if (recipe.name.empty()) recipe.name = name_of_file(file);
  recipe.task = task_of(recipe).name;
  complete(recipe.checkpoint.best, *find_task(recipe.task));
  const std::string& best = recipe.checkpoint.best.metric;
  if (recipe.early_stopping && recipe.early_stopping->metric.empty()) {
    recipe.early_stopping->metric = best;
  }
  if (recipe.schedule.plateau && recipe.schedule.plateau->metric.empty()) {
    recipe.schedule.plateau->metric = best;
  }
  complete(recipe.sync);
  if (recipe.output.empty()) recipe.output = absolute_path("runs/" + recipe.name);
  if (!recipe.batch.global && !recipe.batch.accumulate) recipe.batch.accumulate = 1;
}

std::string folder_that_is_not_utf8(const Source& source) {
  if (!core::is_utf8(source.folder)) return source.folder;
  for (const Source& inner : source.sources) {
    if (std::string found = folder_that_is_not_utf8(inner); !found.empty()) return found;
  }
  return "";
}

// A run stores its recipe as JSON, which must be UTF-8, while file names and the working directory
// may have any bytes.
void refuse_paths_that_are_not_utf8(const Recipe& recipe) {
  const auto check = [](const std::string& pointer, const std::string& path) {
    if (core::is_utf8(path)) return;
    throw core::RecipeError(pointer, in_quotes(path) + " is not UTF-8",
                            "rename the file or folder, or start in another working directory");
  };
  check("/output", recipe.output);
  const std::string* const file =
      find_shard(recipe.data, [](const std::string& path) { return !core::is_utf8(path); });
  if (file != nullptr) check("/data", *file);
  check("/data/train/folder", folder_that_is_not_utf8(recipe.data.train));
  for (const auto& [name, source] : held_out(recipe.data)) {
    check(fmt::format("/data/{}/folder", name), folder_that_is_not_utf8(*source));
  }
  if (recipe.model.weights) check("/model/weights/path", recipe.model.weights->path);
}

}  // namespace

Recipe load_recipe(const fs::path& path, const std::vector<std::string>& overrides,
                   CatalogPtr catalog) {
  return parse_recipe(read_recipe_file(path, path.string()), path.string(), overrides,
                      std::move(catalog));
}

Recipe parse_recipe(const std::string& text, const std::string& name,
                    const std::vector<std::string>& overrides, CatalogPtr catalog) {
  std::vector<std::string> files;
  Recipe blank = blank_recipe();
  const std::unique_ptr<Object> known = describe(blank);
  Node tree = read_tree(text, name, *known, files);
  apply_overrides(tree, overrides, *known);
  Recipe recipe = blank_recipe(catalog ? std::move(catalog) : catalog_for(tree));
  const std::unique_ptr<Object> keys = describe(recipe);
  Problems problems;
  keys->read(tree, "", problems);
  fill_in_context(recipe, problems);
  check_between_keys(recipe, tree, problems);
  problems.throw_if_any();
  fill_in(recipe, name);
  refuse_paths_that_are_not_utf8(recipe);
  check_mirror(recipe.checkpoint.mirror, recipe.output, tree, problems);
  problems.throw_if_any();
  return recipe;
}

std::string to_json(const Recipe& recipe) {
  Recipe copy = recipe;
  return describe(copy)->write().dump(2) + "\n";
}

std::map<std::string, std::string> key_origins(const fs::path& path,
                                               const std::vector<std::string>& overrides) {
  std::map<std::string, std::string> origins;
  add_origins(written_tree(path, overrides), "", origins);
  return origins;
}

Json written_keys(const fs::path& path, const std::vector<std::string>& overrides) {
  return plain_json(written_tree(path, overrides));
}

}  // namespace scaletrain::recipe
