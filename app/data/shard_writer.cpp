#include "app/data/shard_writer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "app/data/card.h"
#include "app/data/new_shard.h"
#include "app/data/shard_files.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/url.h"
#include "lib/format/quarantine.h"
#include "lib/format/tar.h"
#include "lib/format/tar_samples.h"
#include "lib/format/tar_write.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultShardBytes = "256MB";

bool is_shard_of(const std::string& file, const std::string& name) {
  if (!file.starts_with(name + "-")) return false;
  const std::size_t digits = file.find_first_not_of("0123456789", name.size() + 1);
  const std::string rest = digits == std::string::npos ? "" : file.substr(digits);
  return digits > name.size() + 1 && (rest == ".tar" || rest == ".tar.idx");
}

// What card.json and quarantine.json say of shards that are replaced would be said of the new ones.
void forget_old_shards(const ShardOptions& options) {
  core::Disk& disk = core::system_disk();
  const fs::path folder(options.folder);
  disk.remove_all(folder / kCardFile);
  std::vector<format::Quarantined> kept;
  const format::Quarantine old = format::Quarantine::beside(folder);
  for (const format::Quarantined& entry : old.entries()) {
    if (!is_shard_of(entry.shard, options.name)) kept.push_back(entry);
  }
  disk.remove_all(folder / format::kQuarantineFile);
  if (kept.empty()) return;
  core::write_durably(disk, folder / format::kQuarantineFile,
                      format::encode_quarantine(format::Quarantine(std::move(kept))));
}

void make_room(const storage::Stores& stores, const ShardOptions& options) {
  core::Disk& disk = core::system_disk();
  const bool is_remote = core::is_url(options.folder);
  if (is_remote && options.overwrite) {
    throw core::UsageError("--overwrite", "nothing is removed from an object store",
                           "choose another folder or --name");
  }
  if (!is_remote) disk.make_folders(options.folder);
  if (options.overwrite) forget_old_shards(options);
  for (const auto& entry : stores.of(options.folder).list(options.folder)) {
    if (entry.folder || !is_shard_of(entry.name, options.name)) continue;
    const std::string path = file_in(options.folder, entry.name);
    if (!options.overwrite) {
      throw core::UsageError(
          core::shown_path(path), "is there already",
          is_remote ? "choose another folder or --name"
                    : "choose another folder or --name, or replace all shards of this name with "
                      "--overwrite");
    }
    disk.remove_all(path);
  }
}

bool is_complete(const std::vector<WrittenField>& fields) {
  bool image = false, label = false;
  for (const WrittenField& field : fields) {
    image = image || format::is_image_extension(field.extension);
    label = label || field.extension == "cls";
  }
  return image && label;
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
  command.add_option("--name", options.name, "shards are NAME-000000.tar and so on")
      ->capture_default_str();
  command.add_option("--shard-bytes", options.shard_bytes,
                     "begin a new shard before this size, such as 256MB (the default) or 1GiB");
  command
      .add_option("--samples-per-shard", options.samples_per_shard,
                  "begin a new shard after so many samples")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_flag("--overwrite", options.overwrite, "replace all shards of this name");
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
    throw core::UsageError("--name", "is no file name", "as in --name train");
  }
  make_room(stores, options);
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::add(std::string_view key, const std::vector<WrittenField>& fields) {
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
    // A count that is asked for is the only limit, unless a size is asked for too.
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

const std::vector<WrittenShard>& ShardWriter::finish() {
  if (open_) close_shard();
  return written_;
}

void ShardWriter::close_shard() {
  open_->tar.finish();
  const format::FileEntry entry = open_->shard->publish(open_->has_index);
  written_.push_back({open_->path, open_->samples, entry.bytes, entry.sha256});
  open_.reset();
}

}  // namespace scaletrain::app
