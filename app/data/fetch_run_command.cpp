#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/data/files/commands.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRunFileBytes = std::int64_t{1} << 30;

struct FetchRunOptions {
  std::string place, folder;
};

bool is_file_of_run(const std::string& name) {
  constexpr std::array<std::string_view, 5> kEndings{".json", ".jsonl", ".csv", ".txt", ".png"};
  if (name == "lease.json") return false;  // belongs to processes of another machine
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

// Returns the number of files that were written below `to`.
int fetch_files(const storage::Storage& storage, const std::string& from, const fs::path& to) {
  int count = 0;
  for (const storage::Storage::Entry& entry : storage.list(from)) {
    if (entry.folder || !is_file_of_run(entry.name)) continue;
    const auto text = storage::read_if_there(storage, from + "/" + entry.name, kMaxRunFileBytes);
    if (!text) continue;
    core::system_disk().make_folders(to);
    core::write_durably(core::system_disk(), to / entry.name, *text);
    ++count;
  }
  return count;
}

void fetch_run(FetchRunOptions options) {
  while (options.place.size() > 1 && options.place.ends_with('/')) options.place.pop_back();
  const storage::Stores stores;
  const storage::Storage& storage = stores.of(options.place);
  if (fetch_files(storage, options.place, options.folder) == 0) {
    throw core::DataError(core::shown_path(options.place), "holds no run",
                          "name the folder that has recipe.json and metrics.jsonl");
  }
  for (const char* const folder : {"cards", "media"}) {
    fetch_files(storage, options.place + "/" + folder, fs::path(options.folder) / folder);
  }
}

}  // namespace

void add_fetch_run_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<FetchRunOptions>();
  CLI::App* const command = app.add_subcommand(
      "fetch-run", "copy the files of a run from an object store, without checkpoints and logs");
  command->add_option("PLACE", options->place, "Run folder in the object store: s3://...")
      ->required();
  command->add_option("--to", options->folder, "Folder to which the files are written.")
      ->required();
  command->callback([options, &exit_status] {
    fetch_run(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
