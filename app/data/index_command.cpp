#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/in_order.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/shard_index.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

struct IndexOptions {
  std::vector<std::string> paths;
  std::string cache;
  int threads = 0;
  bool hash = false, as_json = false;
};

struct HashedShard {
  IndexedShard shard;
  std::string sha256;
};

HashedShard index_one(const storage::Stores& stores, const std::string& path,
                      const IndexOptions& options, int threads) {
  const std::string sha256 = options.hash ? hash_of(stores, path).sum : "";
  return {write_index(stores, path, options.cache, sha256, threads), sha256};
}

void refuse_compressed(const std::vector<std::string>& shards) {
  const auto found = std::find_if(shards.begin(), shards.end(), core::is_compressed);
  if (found == shards.end()) return;
  throw core::UsageError(
      core::shown_path(*found), "is compressed; only plain tars have an index",
      "nothing needs to be done: training indexes the decompressed shard in data.cache; for an "
      "index beside the shard, write a plain tar with scaletrain data import tar");
}

void run_index(const IndexOptions& options) {
  const storage::Stores stores;
  const std::vector<std::string> shards = resolve_shards(stores, options.paths);
  refuse_compressed(shards);
  observe::WorkProgress progress(STDERR_FILENO, "indexing",
                                 static_cast<std::int64_t>(shards.size()));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::size_t samples = 0;
  const int threads = resolve_threads(options.threads);
  const int together = std::clamp(static_cast<int>(shards.size()), 1, threads);
  in_order<HashedShard>(
      static_cast<std::int64_t>(shards.size()), together,
      [&](std::int64_t i, int) {
        return index_one(stores, shards[static_cast<std::size_t>(i)], options, threads / together);
      },
      [&](std::int64_t i, const HashedShard& done) {
        const std::string& path = shards[static_cast<std::size_t>(i)];
        progress.add(1, done.shard.bytes);
        samples += done.shard.samples;
        nlohmann::ordered_json row = {{"shard", core::shown_path(path)},
                                      {"samples", done.shard.samples},
                                      {"bytes", done.shard.bytes},
                                      {"index", format::index_path(path, options.cache)}};
        if (options.hash) row["sha256"] = done.sha256;
        list.push_back(std::move(row));
      });
  if (options.as_json) {
    print_json({{"shards", list}, {"samples", samples}});
  } else {
    print(fmt::format("indexed {}, {}\n", core::counted(std::ssize(shards), "shard"),
                      core::counted(samples, "sample")));
  }
}

}  // namespace

void add_index_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<IndexOptions>();
  CLI::App* const command = app.add_subcommand("index", "write the indexes of shards");
  add_shards_argument(*command, options->paths);
  command->add_flag("--hash", options->hash, "Store the SHA-256 of each shard in its index.");
  command->add_option("--index-cache", options->cache,
                      "Folder for the indexes, as `data.index_cache`. Default: beside the shards.");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_index(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
