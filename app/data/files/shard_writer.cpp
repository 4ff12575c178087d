#include "app/data/files/shard_writer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "app/data/files/card.h"
#include "app/data/files/class_claim.h"
#include "app/data/files/folder_lock.h"
#include "app/data/files/new_shard.h"
#include "app/data/files/numbered_files.h"
#include "app/data/files/set_classes.h"
#include "app/data/files/shard_files.h"
#include "app/data/files/stop.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/process/signals.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/format/quarantine.h"
#include "lib/format/tar/tar.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/format/tar/tar_write.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultShardBytes = "256MB";

bool is_shard_of(std::string_view file, const std::string& name) {
  return is_numbered(file, name, {".tar", ".tar.idx"});
}

// Removes card.json and the entries of the replaced shards in quarantine.json, which do not hold
// for the new shards.
void forget_old_shards(const storage::Stores& stores, const ShardOptions& options) {
  core::Disk& disk = core::system_disk();
  const fs::path folder(options.folder);
  disk.remove_all(folder / kCardFile);
  std::vector<format::Quarantined> kept;
  const format::Quarantine old = read_quarantine(stores, options.folder);
  for (const format::Quarantined& entry : old.entries()) {
    if (!is_shard_of(entry.shard, options.name)) kept.push_back(entry);
  }
  disk.remove_all(folder / format::kQuarantineFile);
  if (kept.empty()) return;
  core::write_durably(disk, folder / format::kQuarantineFile,
                      format::encode_quarantine(format::Quarantine(std::move(kept))));
}

// The shards of this name that are there, and their indexes.
std::vector<std::string> shards_there(const storage::Stores& stores, const ShardOptions& options) {
  std::vector<std::string> paths;
  for (const auto& entry : stores.of(options.folder).list(options.folder)) {
    if (entry.folder || !is_shard_of(entry.name, options.name)) continue;
    paths.push_back(file_in(options.folder, entry.name));
  }
  return paths;
}

void refuse_shards_there(const storage::Stores& stores, const ShardOptions& options) {
  const std::vector<std::string> there = shards_there(stores, options);
  if (there.empty()) return;
  throw core::UsageError(
      core::shown_path(there.front()), "exists already",
      core::is_url(options.folder)
          ? "choose another folder or --name"
          : "choose another folder or --name, or replace all shards of this name with "
            "--overwrite");
}

void check_room(const storage::Stores& stores, const ShardOptions& options) {
  const bool is_remote = core::is_url(options.folder);
  if (is_remote && options.overwrite) {
    throw core::UsageError("--overwrite", "nothing is removed from an object store",
                           "choose another folder or --name");
  }
  if (!is_remote) {
    options.folders->make(options.folder);
    remove_abandoned(options.folder, options.name);
  }
  if (!options.overwrite) refuse_shards_there(stores, options);
}

// True if the sample can be listed in an index: one image, a class number or a list of them, and no
// repeated extension.
bool is_complete(const std::vector<WrittenField>& fields) {
  std::set<std::string_view> seen;
  std::int64_t images = 0;
  bool label = false;
  for (const WrittenField& field : fields) {
    if (!seen.insert(field.extension).second) return false;
    images += format::is_image_extension(field.extension) ? 1 : 0;
    label = label || (field.extension == "cls" && format::parse_labels(field.bytes));
  }
  return images == 1 && label;
}

}  // namespace

// The shard that is being written.
struct ShardWriter::Open {
  Open(const storage::Stores& stores, std::string shard_path)
      : path(std::move(shard_path)),
        shard(new_shard(stores, path)),
        tar([this](std::span<const std::byte> bytes) { shard->write(bytes); }) {}

  std::string path;
  std::unique_ptr<NewShard> shard;
  format::TarWriter tar;
  std::int64_t samples = 0;
  bool has_index = true;
};

void add_shard_flags(CLI::App& command, ShardOptions& options) {
  command
      .add_option("--name", options.name,
                  "Prefix of the shards, which are named NAME-000000.tar and so on.")
      ->capture_default_str();
  command.add_option("--shard-bytes", options.shard_bytes,
                     "Maximum size of a shard, such as 1GiB. Default: 256MB.");
  command
      .add_option("--samples-per-shard", options.samples_per_shard,
                  "Maximum number of samples in a shard.")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_flag("--overwrite", options.overwrite,
                   "Replace all existing shards with the same name prefix.");
}

std::int64_t parse_bytes(const std::string& text, const std::string& option) {
  struct Unit {
    std::string_view name;
    std::int64_t bytes;
  };
  constexpr std::array<Unit, 8> kUnits{{{"", 1},
                                        {"kB", 1000},
                                        {"MB", 1'000'000},
                                        {"GB", 1'000'000'000},
                                        {"KiB", 1 << 10},
                                        {"MiB", 1 << 20},
                                        {"GiB", 1 << 30},
                                        {"TB", std::int64_t{1000} * 1000 * 1000 * 1000}}};
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  for (const Unit& known : kUnits) {
    if (parsed.ec == std::errc() && number > 0 && unit == known.name &&
        number <= (std::int64_t{1} << 50) / known.bytes) {
      return number * known.bytes;
    }
  }
  throw core::UsageError(option, fmt::format("\"{}\" is not a size", text),
                         "write a number of bytes, or one with kB, MB, GB, KiB, MiB or GiB: 256MB");
}

ShardWriter::ShardWriter(const storage::Stores& stores, const ShardOptions& options)
    : stores_(stores),
      options_(options),
      limit_(parse_bytes(options.shard_bytes.empty() ? kDefaultShardBytes : options.shard_bytes,
                         "--shard-bytes")) {
  if (options.name.empty() || options.name.find('/') != std::string::npos) {
    throw core::UsageError("--name", "is not a file name", "use a name such as train");
  }
  core::install_stop_handlers();
  check_room(stores, options);
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::claim_classes(const std::vector<std::string>& classes) {
  if (classes.empty()) return;
  classes_ = classes;
  if (core::is_url(options_.folder)) {
    check_classes(stores_, options_.folder, classes);
  } else {
    claim_ = std::make_unique<ClassClaim>(stores_, options_.folder, classes);
  }
}

void ShardWriter::add(std::string_view key, const std::vector<WrittenField>& fields) {
  leave_if_stopped(options_.folder, core::is_url(options_.folder) ? written_.size() : 0);
  std::int64_t needed = 0;
  for (const WrittenField& field : fields) {
    if (static_cast<std::int64_t>(field.bytes.size()) > format::kMaxMemberBytes) {
      throw core::DataError(format::shown_name(key),
                            fmt::format("has {} bytes", field.bytes.size()),
                            fmt::format("at most {} are allowed", format::kMaxMemberBytes));
    }
    needed += format::TarWriter::member_bytes(fmt::format("{}.{}", key, field.extension),
                                              static_cast<std::int64_t>(field.bytes.size()));
  }
  if (open_) {
    const bool full = open_->tar.bytes() + needed + 2 * format::kTarBlock > limit_;
    const bool counted = options_.samples_per_shard > 0;
    // A requested sample count is the only limit, unless a size was requested too.
    const bool by_bytes = full && (!counted || !options_.shard_bytes.empty());
    if (by_bytes || (counted && open_->samples >= options_.samples_per_shard)) close_shard();
  }
  if (!open_) {
    open_ = std::make_unique<Open>(
        stores_,
        file_in(options_.folder, fmt::format("{}-{:06}.tar", options_.name, written_.size())));
  }
  for (const WrittenField& field : fields) {
    open_->tar.add(fmt::format("{}.{}", key, field.extension), field.bytes);
  }
  ++open_->samples;
  if (!is_complete(fields)) {
    ++incomplete_;
    open_->has_index = false;
  }
}

void ShardWriter::close_shard() {
  if (!open_) return;
  open_->tar.finish();
  const format::FileEntry entry = open_->shard->finish(open_->has_index);
  written_.push_back({open_->path, open_->samples, entry.bytes, entry.sum});
  whole_.push_back(std::move(open_->shard));
  open_.reset();
}

// The shards are in their places already.
void ShardWriter::finish_in_store() {
  try {
    keep_classes(stores_, options_.folder, classes_);
  } catch (const core::DataError& error) {
    throw core::DataError(
        error.place(), error.found(),
        fmt::format("another command wrote it in the meantime: remove the {} {}-*.tar of this "
                    "command, whose labels are numbers of other classes",
                    core::counted(std::ssize(written_), "shard"), options_.name));
  }
}

const std::vector<WrittenShard>& ShardWriter::finish() {
  close_shard();
  if (core::is_url(options_.folder)) {
    finish_in_store();
    return written_;
  }
  core::Disk& disk = core::system_disk();
  const core::Descriptor lock = lock_folder(options_.folder);
  // Another program may have put shards there in the meantime.
  if (!options_.overwrite) refuse_shards_there(stores_, options_);
  keep_classes(stores_, options_.folder, classes_);
  if (options_.overwrite) {
    forget_old_shards(stores_, options_);
    for (const std::string& path : shards_there(stores_, options_)) disk.remove_all(path);
  }
  for (const auto& shard : whole_) shard->publish();
  disk.sync_folder(options_.folder);
  return written_;
}

void refuse_replaced_inputs(const ShardOptions& options, const std::vector<std::string>& inputs) {
  std::error_code failed;
  if (!options.overwrite || !fs::is_directory(options.folder, failed)) return;
  for (const auto& entry : storage::file_storage().list(options.folder)) {
    if (entry.folder || !is_shard_of(entry.name, options.name)) continue;
    const std::string path = file_in(options.folder, entry.name);
    for (const std::string& input : inputs) {
      if (!fs::equivalent(path, input, failed)) continue;
      throw core::UsageError("--overwrite",
                             fmt::format("{} would be replaced, but this command reads it", path),
                             "choose another folder or --name");
    }
  }
}

}  // namespace scaletrain::app
