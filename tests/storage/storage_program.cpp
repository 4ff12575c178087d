// What the Python tests ask of the storage module:
//   storage_program SETTINGS get PATH            the object on standard output, through the cache
//   storage_program SETTINGS ranges PATH BYTES   the same in ranges of so many bytes
//   storage_program SETTINGS list FOLDER         a name a line, folders with a '/'
//   storage_program SETTINGS put PATH FILE       writes it
//   storage_program SETTINGS put-new PATH FILE   "true" or "false": whether it was written
// SETTINGS: {"storage": {...}, "cache": {...}} with keys as in a recipe; both may be left out.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/storage/stores.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 30;

recipe::Storage storage_of(const nlohmann::json& settings) {
  const nlohmann::json json = settings.value("storage", nlohmann::json::object());
  recipe::Storage storage;
  storage.endpoint = json.value("endpoint", storage.endpoint);
  storage.region = json.value("region", storage.region);
  storage.stall_timeout_s = json.value("stall_timeout_s", storage.stall_timeout_s);
  storage.give_up_after_s = json.value("give_up_after_s", storage.give_up_after_s);
  return storage;
}

std::optional<recipe::Cache> cache_of(const nlohmann::json& settings) {
  if (!settings.contains("cache")) return std::nullopt;
  return recipe::Cache{settings["cache"]["folder"], settings["cache"]["max_bytes"]};
}

void copy_out(const storage::Object& object, std::int64_t piece) {
  const std::int64_t end = object.identity().bytes;
  std::vector<std::byte> bytes;
  for (std::int64_t offset = 0; offset < end; offset += piece) {
    bytes.resize(static_cast<std::size_t>(std::min(piece, end - offset)));
    object.read(offset, bytes);
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  }
}

void run(const storage::Stores& stores, const std::vector<std::string>& arguments) {
  const std::string& command = arguments.at(0);
  const std::string& path = arguments.at(1);
  const auto file = [&] {
    return core::read_file(arguments.at(2), kMaxFileBytes, core::ExitCode::kData);
  };
  if (command == "get") copy_out(*stores.open(path), 1 << 20);
  if (command == "ranges") copy_out(*stores.open(path), std::stoll(arguments.at(2)));
  if (command == "put") stores.of(path).write(path, file());
  if (command == "put-new") fmt::print("{}\n", stores.of(path).write_if_absent(path, file()));
  if (command == "list") {
    for (const auto& entry : stores.of(path).list(path)) {
      fmt::print("{}{}\n", entry.name, entry.folder ? "/" : "");
    }
  }
}

}  // namespace

int main(int count, char** values) {
  try {
    const std::vector<std::string> arguments(values + 1, values + count);
    const auto settings = nlohmann::json::parse(arguments.at(0));
    const storage::Stores stores(storage_of(settings), cache_of(settings));
    run(stores, {arguments.begin() + 1, arguments.end()});
    return 0;
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
