#include "launcher/commands/start/find_data.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

#include "launcher/commands/start/given_data.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

struct DataKind {
  const char* name;
  bool (*recognizes)(const GivenData&);
  FoundData (*fill)(const GivenData&);
};

// The first row that recognizes the path fills the facts.
constexpr std::array<DataKind, 7> kKinds{{
    {"token files", is_tokens, fill_tokens},
    {"tar shards", is_shards, fill_shards},
    {"image folder with train and val", is_split_folder, fill_split_folder},
    {"image folder with one sub-folder a class", is_class_folder, fill_class_folder},
    {"list of images", is_image_list, fill_image_list},
    {"text", is_text, fill_text},
    {"data set of another format", is_foreign, fill_foreign},
}};

constexpr const char* kRemedy =
    "give a folder with one sub-folder of images a class, shards, a .csv list, token files or "
    "text";

GivenData look_at(const std::string& text) {
  GivenData given{.text = text, .path = text};
  while (given.text.size() > 1 && given.text.ends_with('/')) given.text.pop_back();
  given.path = given.text;
  std::error_code ignored;
  given.is_folder = fs::is_directory(given.path, ignored);
  given.is_file = fs::is_regular_file(given.path, ignored);
  return given;
}

}  // namespace

FoundData find_data(const std::string& given_text) {
  if (core::is_url(given_text)) {
    throw core::UsageError("--data", fmt::format("{} is remote", core::shown_path(given_text)),
                           "name data on this machine, and put the URL into the recipe afterwards");
  }
  const GivenData given = look_at(given_text);
  for (const DataKind& kind : kKinds) {
    if (!kind.recognizes(given)) continue;
    FoundData found = kind.fill(given);
    found.kind = kind.name;
    if (found.name.empty()) found.name = name_of_data(given);
    return found;
  }
  std::error_code ignored;
  const bool exists = fs::exists(given.path, ignored);
  throw core::UsageError(
      "--data",
      fmt::format("{}: {}", core::printable(given_text),
                  exists ? "is not training data in a known format" : "does not exist"),
      kRemedy);
}

}  // namespace scaletrain::launcher
