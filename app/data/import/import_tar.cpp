#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "app/data/import/import_sources.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar.h"
#include "lib/format/tar/tar_links.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/storage/block_reader.h"

namespace scaletrain::app {
namespace {

// The members of one tar to samples.
class TarImport {
 public:
  TarImport(const std::string& place, const storage::Object& file, const format::ReadAt& read,
            ImportedSet& set)
      : place_(place),
        file_(file),
        read_(read),
        set_(set),
        links_(place, file.identity().bytes, read) {}

  void run(const UseSample& use) {
    format::TarReader reader(place_, file_.identity().bytes, read_);
    ImportedSample sample;
    while (auto member = reader.next()) {
      auto parts = format::split_sample_name(member->path);
      if (!parts) continue;
      auto bytes = bytes_of(*member);
      if (!bytes) continue;
      if (!sample.fields.empty() && parts->key != sample.key) {
        use(std::exchange(sample, ImportedSample()));
      }
      sample.key = std::move(parts->key);
      sample.source = place_;
      sample.fields.push_back({std::move(parts->extension), std::move(*bytes)});
    }
    if (!sample.fields.empty()) use(std::move(sample));
  }

 private:
  // Contents of a file or of a hard link's target; counts links without one.
  std::optional<std::string> bytes_of(const format::TarMember& member) {
    if (member.regular) return read_bytes(member, read_);
    const auto link = links_.link_of(member);
    if (!link) return std::nullopt;  // a folder or a device
    const auto file = links_.resolve(member, *link);
    // Read with one call, since the member may be anywhere before.
    if (file) return read_bytes(*file, [&](auto at, auto out) { file_.read(at, out); });
    if (set_.lost_links++ == 0) {
      set_.first_lost_link = fmt::format("{}: {} -> {}", place_, format::shown_name(member.path),
                                         format::shown_name(link->target));
    }
    return std::nullopt;
  }

  static std::string read_bytes(const format::TarMember& member, const format::ReadAt& read) {
    std::string bytes(static_cast<std::size_t>(member.bytes), '\0');
    read(member.data, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  const std::string& place_;
  const storage::Object& file_;
  const format::ReadAt& read_;
  ImportedSet& set_;
  format::TarLinks links_;
};

}  // namespace

void import_tar(const storage::Stores& stores, const std::string& path, const UseSample& use,
                ImportedSet& set) {
  const auto file = open_source(path, stores.of(path));
  const storage::BlockReader pieces(*file);
  const format::ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    core::is_url(path) ? pieces.read(offset, out) : file->read(offset, out);
  };
  const std::string place = core::shown_path(path);
  TarImport(place, *file, read, set).run(use);
}

void for_each_key(const storage::Stores& stores, const std::string& path,
                  const std::function<void(const std::string& key)>& use) {
  const auto file = open_source(path, stores.of(path));
  const storage::BlockReader pieces(*file);
  const format::ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    core::is_url(path) ? pieces.read(offset, out) : file->read(offset, out);
  };
  format::TarReader reader(core::shown_path(path), file->identity().bytes, read);
  while (const auto member = reader.next()) {
    if (const auto parts = format::split_sample_name(member->path)) use(parts->key);
  }
}

}  // namespace scaletrain::app
