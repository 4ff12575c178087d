#include "launcher/jobs/checks/launch_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "launcher/jobs/checks/class_check.h"
#include "launcher/jobs/checks/data_cards.h"
#include "launcher/jobs/checks/sample_check.h"
#include "launcher/jobs/checks/token_check.h"
#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/shared_device.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/sources.h"

namespace scaletrain::launcher {
namespace {

// "#!", or an ELF file.
bool begins_as_program(const std::string& path) {
  std::array<char, 4> bytes{};
  std::ifstream(path, std::ios::binary).read(bytes.data(), bytes.size());
  const std::string_view begin(bytes.data(), bytes.size());
  return begin.starts_with("#!") || begin ==
                                        "\x7f"
                                        "ELF";
}

void add_files(const recipe::Source& source, std::set<std::string>& files) {
  files.insert(source.shards.begin(), source.shards.end());
  files.insert(source.tokens.begin(), source.tokens.end());
  for (const recipe::Source& inner : source.sources) add_files(inner, files);
}

void warn_of_shared_files(const recipe::Data& data) {
  std::set<std::string> trained;
  add_files(data.train, trained);
  for (const auto& [name, source] : recipe::held_out(data)) {
    std::set<std::string> files;
    add_files(*source, files);
    const auto shared = std::find_if(files.begin(), files.end(), [&](const std::string& file) {
      return trained.contains(file);
    });
    if (shared == files.end()) continue;
    core::warn("/data/{}: {} is in /data/train too: its metrics are measured on training data",
               name, core::shown_path(*shared));
  }
}

}  // namespace

void check_data(const recipe::Recipe& recipe, int ranks, Begins begins) {
  recipe::check_sources(recipe);
  if (begins == Begins::kNow) recipe::check_weights(recipe);
  if (begins != Begins::kResumed) {
    check_class_count(recipe);
    check_class_names(recipe);
  }
  check_cards(recipe.data);
  check_tokens(recipe, ranks);
  check_samples(recipe, ranks);
  warn_of_shared_files(recipe.data);
}

void check_devices(const recipe::Recipe& recipe, const Placement& placement) {
  if (recipe.device == "cpu" || core::shares_device()) return;
  const int gpus = count_gpus();
  if (gpus == 0 && recipe.precision.name == "fp8" && !recipe.precision.flag("simulate")) {
    throw core::UsageError(
        "/precision", "fp8 needs a GPU, and none is visible",
        R"(use bf16, or compute the same roundings slowly with "simulate": true)");
  }
  if (placement.nproc <= gpus || (recipe.device == "auto" && gpus == 0)) return;
  throw core::UsageError(
      "--nproc",
      fmt::format("{}, and {} {} visible", core::counted(placement.nproc, "worker"),
                  core::counted(gpus, "GPU"), gpus == 1 ? "is" : "are"),
      "start one worker for each GPU at most, or train on CPUs: --set device=cpu");
}

void refuse_program_as_recipe(const std::string& path) {
  if (path.ends_with(".json") || path.ends_with(".jsonc")) return;
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  const bool is_program = exists ? path.ends_with(".sh") || begins_as_program(path)
                                 : core::find_program(path).has_value();
  if (exists && !is_program) return;
  throw core::UsageError(
      path, is_program ? "is a program, but a recipe is expected here" : "is not a file",
      fmt::format(
          "put -- before a program: scaletrain launch -- {} ARGS...",
          core::shell_word(is_program && exists && path.find('/') == std::string::npos ? "./" + path
                                                                                       : path)));
}

void warn_of_patience(const recipe::Recipe& recipe, std::chrono::milliseconds hang_timeout) {
  const double limit_s = std::chrono::duration<double>(hang_timeout).count();
  if (limit_s == 0 || recipe.storage.give_up_after_s < limit_s) return;
  if (recipe::find_shard(recipe.data, core::is_url) == nullptr) return;
  core::warn(
      "/storage/give_up_after_s: {} s have no effect: --hang-timeout ends the run after {} s "
      "without progress; lower the first or raise the second",
      recipe.storage.give_up_after_s, limit_s);
}

}  // namespace scaletrain::launcher
