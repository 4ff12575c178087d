// Writes shards NAME-000000.tar, NAME-000001.tar, ... in a folder, local or in an object store,
// each atomically. Each gets an index if every sample has one image and a class number, as training
// needs. In a local folder all shards appear together, and only then replace older ones; in an
// object store each appears when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/data/files/new_folders.h"
#include "lib/core/text/cli_app.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

class ClassClaim;
class NewShard;

struct ShardOptions {
  std::string folder;
  std::string name = "train";          // part of the files' names
  std::string shard_bytes;             // "256MB", "1GiB"; "" is the default
  std::int64_t samples_per_shard = 0;  // 0: no such limit
  bool overwrite = false;
  // Folders that the command creates, shared by all its writers.
  std::shared_ptr<NewFolders> folders = std::make_shared<NewFolders>();
};

// --name, --shard-bytes, --samples-per-shard, --overwrite.
void add_shard_flags(CLI::App& command, ShardOptions& options);

// "256MB" (10^6), "1GiB" (2^30), "1000". Throws core::UsageError naming `option`.
std::int64_t parse_bytes(const std::string& text, const std::string& option);

// Throws core::UsageError if --overwrite would replace one of the `inputs`: shards or other files,
// some of them URLs.
void refuse_replaced_inputs(const ShardOptions& options, const std::vector<std::string>& inputs);

struct WrittenShard {
  std::string path;
  std::int64_t samples = 0, bytes = 0;
  std::string sha256;
};

struct WrittenField {
  std::string_view extension, bytes;
};

class ShardWriter {
 public:
  // Creates the folder; afterwards add() notices a stop request (lib/core/process/signals.h).
  // Throws core::UsageError if shards of this name exist, unless `overwrite` is set, which object
  // stores do not allow. `stores` must outlive it.
  ShardWriter(const storage::Stores& stores, const ShardOptions& options);
  ~ShardWriter();  // removes unfinished shards

  // Sets the classes for classes.json. Call as soon as they are known, and before finish(). Throws
  // core::DataError if the folder has others, or another command is writing shards with other
  // classes there.
  void claim_classes(const std::vector<std::string>& classes);

  // Appends one sample, in a new shard if it would exceed the limit on bytes or samples. Throws
  // core::Error for a stop request.
  void add(std::string_view key, const std::vector<WrittenField>& fields);

  // Ends the current shard, so that its errors appear before finish() of any writer.
  void close_shard();

  // Ends the last shard, writes classes.json if it does not exist, removes older shards of this
  // name with their indexes and quarantine entries, and renames the new ones. Returns the shards in
  // order. Throws core::UsageError for shards that another program created meanwhile,
  // core::DataError for other classes.
  const std::vector<WrittenShard>& finish();

  // Samples without an image or a class number, or with two images, which training cannot use.
  std::int64_t incomplete() const { return incomplete_; }

 private:
  struct Open;

  void finish_in_store();

  const storage::Stores& stores_;
  ShardOptions options_;
  std::int64_t limit_;
  std::vector<std::string> classes_;
  std::unique_ptr<ClassClaim> claim_;
  std::unique_ptr<Open> open_;
  std::vector<std::unique_ptr<NewShard>> whole_;
  std::vector<WrittenShard> written_;
  std::int64_t incomplete_ = 0;
};

}  // namespace scaletrain::app
