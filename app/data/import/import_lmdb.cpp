#include <fmt/format.h>
#include <lmdb.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "app/data/import/import_sources.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::app {
namespace {

void check_lmdb(const std::string& path, int status) {
  if (status != MDB_SUCCESS) {
    throw core::DataError(path, mdb_strerror(status), "name an LMDB folder or file");
  }
}

// LMDB maps its file: reading past the end of a truncated one would raise SIGBUS.
void check_is_whole(const std::string& path, MDB_env* env) {
  int fd = -1;
  MDB_envinfo info{};
  MDB_stat pages{};
  check_lmdb(path, mdb_env_get_fd(env, &fd));
  check_lmdb(path, mdb_env_info(env, &info));
  check_lmdb(path, mdb_env_stat(env, &pages));
  const auto wanted = (static_cast<std::int64_t>(info.me_last_pgno) + 1) * pages.ms_psize;
  const std::int64_t there = ::lseek(fd, 0, SEEK_END);
  if (there < wanted) {
    throw core::DataError(path, fmt::format("has {} bytes of {}", there, wanted),
                          "the file is truncated: copy it again; if other programs read it to the "
                          "end, mdb_copy -c writes a copy without free pages");
  }
}

}  // namespace

void import_lmdb(const std::string& path, const UseSample& use) {
  MDB_env* opened = nullptr;
  check_lmdb(path, mdb_env_create(&opened));
  const std::unique_ptr<MDB_env, void (*)(MDB_env*)> env(opened, mdb_env_close);
  std::error_code ignored;
  const unsigned no_folder = std::filesystem::is_directory(path, ignored) ? 0U : MDB_NOSUBDIR;
  core::refuse_placeholder_file(no_folder != 0 ? path : path + "/data.mdb");
  constexpr mdb_mode_t kReadable = 0444;
  // Without a lock file, since the folder may not be writable.
  check_lmdb(path,
             mdb_env_open(opened, path.c_str(), MDB_RDONLY | MDB_NOLOCK | no_folder, kReadable));
  check_is_whole(path, opened);
  MDB_txn* begun = nullptr;
  check_lmdb(path, mdb_txn_begin(opened, nullptr, MDB_RDONLY, &begun));
  const std::unique_ptr<MDB_txn, void (*)(MDB_txn*)> transaction(begun, mdb_txn_abort);
  MDB_dbi database = 0;
  check_lmdb(path, mdb_dbi_open(begun, nullptr, 0, &database));
  MDB_cursor* found = nullptr;
  check_lmdb(path, mdb_cursor_open(begun, database, &found));
  const std::unique_ptr<MDB_cursor, void (*)(MDB_cursor*)> cursor(found, mdb_cursor_close);

  ImportedSample sample;
  MDB_val key{}, value{};
  int status = MDB_SUCCESS;
  while ((status = mdb_cursor_get(found, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
    const std::string name(static_cast<const char*>(key.mv_data), key.mv_size);
    auto parts = format::split_sample_name(name);
    if (!parts) {
      throw core::DataError(fmt::format("{}: {}", path, format::shown_name(name)),
                            "its key is not KEY.EXTENSION",
                            "name entries as in 0001.jpg, 0001.cls");
    }
    if (!sample.fields.empty() && parts->key != sample.key) {
      use(std::exchange(sample, ImportedSample()));
    }
    sample.key = std::move(parts->key);
    sample.source = core::shown_path(path);
    sample.fields.push_back({std::move(parts->extension),
                             std::string(static_cast<const char*>(value.mv_data), value.mv_size)});
  }
  if (status != MDB_NOTFOUND) check_lmdb(path, status);
  if (!sample.fields.empty()) use(std::move(sample));
}

}  // namespace scaletrain::app
