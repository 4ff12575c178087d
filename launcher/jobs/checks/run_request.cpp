#include "launcher/jobs/checks/run_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/mirror_copies.h"
#include "launcher/jobs/checks/remote_sets.h"
#include "launcher/jobs/checks/worker_program.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/idle_keys.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRecipeBytes = 64 << 20;

constexpr std::array<std::string_view, 22> kFree{
    "/output",        "/worker",           "/log",         "/threads",
    "/checkpoint",    "/validate",         "/storage",     "/data/threads",
    "/data/prefetch", "/data/index_cache", "/data/cache",  "/data/bad_samples/max_rate",
    "/name",          "/batch/memory_mb",  "/recompute",   "/offload",
    "/dist",          "/profile",          "/description", "/anomaly/saturation",
    "/cost",          "/integrity"};

// True if `pointer` is `key` or below it.
bool covers(std::string_view key, std::string_view pointer) {
  return pointer.starts_with(key) && (pointer.size() == key.size() || pointer[key.size()] == '/');
}

// Converts "optimizer.lr" to a JSON pointer; a pointer is not changed.
std::string as_pointer(std::string key) {
  if (key.starts_with("/")) return key;
  std::replace(key.begin(), key.end(), '.', '/');
  return "/" + key;
}

std::string as_key(std::string pointer) {
  pointer.erase(0, 1);
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return pointer;
}

// Returns the key that --allow must name for a difference at `pointer`. If a component was replaced
// by another one, all of its keys differ, and the component itself is returned.
std::string what_changed(const std::string& pointer, const std::vector<std::string>& differing) {
  const std::string thing = pointer.substr(0, pointer.rfind('/'));
  const bool exchanged = !thing.empty() && std::find(differing.begin(), differing.end(),
                                                     thing + "/name") != differing.end();
  return exchanged ? thing : pointer;
}

// Reads recipe.json of a run, or of a checkpoint, whose checksum is verified first.
std::string read_recipe(const fs::path& folder) {
  if (fs::exists(folder / "manifest.json")) {
    return format::read_listed_file(folder, format::read_manifest(folder), "recipe.json");
  }
  return core::read_file(folder / "recipe.json", kMaxRecipeBytes, core::ExitCode::kData);
}

struct ResumePoint {
  fs::path run;                        // "": a checkpoint outside of a run's folder
  std::optional<fs::path> checkpoint;  // nullopt: the newest of the run
};

// Resolves the PATH of --resume.
ResumePoint resume_point(const std::string& path) {
  if (core::is_url(path)) {
    throw core::UsageError("--resume", fmt::format("{} is not a path", core::shown_path(path)),
                           "name it in /checkpoint/mirror of the recipe, and give --resume auto");
  }
  fs::path given = fs::absolute(path).lexically_normal();
  if (!given.has_filename()) given = given.parent_path();
  // The links may be out of date: `latest` means the newest checkpoint, and `best` the best one.
  if (given.filename() == "latest") given = given.parent_path();
  if (given.filename() == "best" && given.parent_path().filename() == "checkpoints") {
    given = format::checkpoints_at(given).folders.front();
  }
  if (!fs::exists(given)) {
    throw core::CheckpointError(path, "does not exist",
                                "name a run's folder, one of its checkpoints, or latest");
  }
  if (given.filename() == "checkpoints") return {.run = given.parent_path(), .checkpoint = {}};
  if (fs::exists(given / "manifest.json")) {
    const fs::path checkpoint = fs::canonical(given);
    const fs::path folder = checkpoint.parent_path();
    return {.run = folder.filename() == "checkpoints" ? folder.parent_path() : fs::path(),
            .checkpoint = checkpoint};
  }
  if (fs::exists(given / "recipe.json") || fs::exists(given / "checkpoints")) {
    return {.run = given, .checkpoint = {}};
  }
  throw core::CheckpointError(path, "is neither a run's folder nor a checkpoint",
                              "name a run's folder, one of its checkpoints, or latest");
}

// Request for a run of which only the remote checkpoint copies are left.
RunRequest run_from_copies(const LaunchOptions& options) {
  std::vector<std::string> overrides{"checkpoint.mirror=" + options.path};
  const std::vector<std::string> given = overrides_of(options);
  overrides.insert(overrides.end(), given.begin(), given.end());
  const std::string place = core::shown_path(options.path);
  RunRequest request{
      .recipe = with_remote_shards(
          recipe::parse_recipe(recipe_in_mirror(options.path), place, overrides), place),
      .start = RunRequest::Start::kNewest,
      .allow = options.allow};
  check_allowed_keys(options.allow, request.recipe);
  return request;
}

}  // namespace

RunRequest run_to_launch(const LaunchOptions& options) {
  const std::vector<std::string> overrides = overrides_of(options);
  RunRequest request{
      .recipe = with_remote_shards(load_recipe_of_run(options.path, overrides), options.path),
      .allow = options.allow};
  check_allowed_keys(options.allow, request.recipe);
  for (const std::string& idle :
       recipe::idle_keys(request.recipe, recipe::key_origins(options.path, overrides))) {
    core::warn("{}", idle);
  }
  if (options.resume == "auto") {
    request.start = RunRequest::Start::kNewest;
  } else if (!options.resume.empty()) {
    const ResumePoint point = resume_point(options.resume);
    const bool own = !point.checkpoint && fs::exists(request.recipe.output) &&
                     fs::equivalent(point.run, request.recipe.output);
    request.start = own ? RunRequest::Start::kNewest : RunRequest::Start::kCheckpoint;
    request.checkpoint = point.checkpoint.value_or(point.run);
  }
  return request;
}

RunRequest run_to_resume(const LaunchOptions& options) {
  if (core::is_url(options.path)) return run_from_copies(options);
  const ResumePoint point = resume_point(options.path);
  const fs::path file = point.checkpoint.value_or(point.run) / "recipe.json";
  if (!fs::exists(file)) {
    throw core::CheckpointError(file.string(), "does not exist",
                                "give the recipe: scaletrain launch --resume PATH RECIPE");
  }
  const std::string text = read_recipe(file.parent_path());
  // A run that was moved continues in its present folder.
  std::vector<std::string> overrides;
  if (!point.run.empty()) overrides.push_back("output=" + point.run.string());
  const std::vector<std::string> given = overrides_of(options);
  overrides.insert(overrides.end(), given.begin(), given.end());
  RunRequest request{.recipe = with_remote_shards(
                         recipe::parse_recipe(text, file.string(), overrides), file.string()),
                     .start = RunRequest::Start::kNewest,
                     .allow = options.allow};
  check_allowed_keys(options.allow, request.recipe);
  if (point.checkpoint || fs::path(request.recipe.output) != point.run) {
    request.start = RunRequest::Start::kCheckpoint;
    request.checkpoint = point.checkpoint.value_or(point.run);
  }
  return request;
}

void check_allowed_keys(const std::vector<std::string>& allow, const recipe::Recipe& recipe) {
  if (allow.empty()) return;
  const std::vector<std::string> known = recipe::all_keys(recipe.model.catalog);
  for (const std::string& key : allow) {
    const std::string plain = as_key(as_pointer(key));
    if (std::find(known.begin(), known.end(), plain) != known.end()) continue;
    const std::string near = core::nearest(plain, known);
    throw core::UsageError("--allow",
                           fmt::format("\"{}\" is not a key of a recipe", core::printable(key)),
                           near.empty() ? "scaletrain recipe reference lists all keys"
                                        : fmt::format("did you mean \"{}\"?", near));
  }
}

std::optional<recipe::Recipe> stored_recipe(const fs::path& folder,
                                            const recipe::CatalogPtr& catalog) {
  const fs::path file = folder / "recipe.json";
  if (!fs::exists(file)) return std::nullopt;
  return recipe::parse_recipe(read_recipe(folder), file.string(), {}, catalog);
}

bool is_allowed(const std::vector<std::string>& allow, std::string_view pointer) {
  return std::any_of(allow.begin(), allow.end(),
                     [&](const std::string& key) { return covers(as_pointer(key), pointer); });
}

bool check_differences(const recipe::Recipe& stored, const recipe::Recipe& recipe,
                       const std::vector<std::string>& allow, const std::string& where) {
  bool other_length = false;
  std::string differing;
  std::vector<std::string> flags;
  recipe::Recipe asked = recipe;
  // The resumed run keeps the batch size that it has found.
  if (asked.batch.is_automatic()) asked.batch.per_device = stored.batch.per_device;
  const std::vector<std::string> pointers = recipe::differing_keys(stored, asked);
  for (const std::string& pointer : pointers) {
    other_length = other_length || pointer == "/epochs" || pointer == "/steps";
    const bool free = std::any_of(kFree.begin(), kFree.end(),
                                  [&](std::string_view key) { return covers(key, pointer); }) ||
                      is_allowed(allow, pointer);
    if (free) continue;
    differing += (differing.empty() ? "" : ", ") + as_key(pointer);
    std::string flag = "--allow " + as_key(what_changed(pointer, pointers));
    if (flags.empty() || flags.back() != flag) flags.push_back(std::move(flag));
  }
  if (!differing.empty()) {
    throw core::UsageError(where, "the recipe differs from the run that is continued: " + differing,
                           fmt::format("if the change is intended, add {}", fmt::join(flags, " ")));
  }
  return other_length;
}

}  // namespace scaletrain::launcher
