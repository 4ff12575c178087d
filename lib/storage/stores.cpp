#include "lib/storage/stores.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/url.h"
#include "lib/storage/cache.h"
#include "lib/storage/http.h"
#include "lib/storage/http_caller.h"
#include "lib/storage/pipe.h"
#include "lib/storage/s3.h"
#include "lib/storage/unpacked_file.h"

namespace scaletrain::storage {

namespace {

constexpr double kPieceS = 60;  // for a piece of a stream (lib/storage/storage.cpp)

bool goes_through_cache(const std::string& path) {
  return core::is_url(path) || core::is_compressed(path);
}

}  // namespace

Stores::Stores() : Stores(recipe::Storage{}, std::nullopt) { unpacks_ = true; }

Stores::Stores(const recipe::Storage& settings, const std::optional<recipe::Cache>& cache,
               int sharers)
    : settings_(settings), caller_(std::make_unique<HttpCaller>(settings)) {
  if (!cache) return;
  // Longer than another process may take for one piece: a slower one is of no use.
  const double patience_s = settings.give_up_after_s + settings.stall_timeout_s + kPieceS;
  cache_ = std::make_unique<Cache>(cache->folder, cache->max_bytes, patience_s, sharers);
  index_folder_ = cache->folder + "/index";
}

Stores::~Stores() { cancel(); }

void Stores::cancel() const { caller_->cancel(); }

const Storage& Stores::of(const std::string& path) const {
  if (!core::is_url(path)) return file_storage();
  const std::string scheme(core::url_scheme(path));
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Storage>& storage = by_scheme_[scheme];
  if (!storage) storage = make(scheme);
  if (!storage) {
    throw core::DataError(core::shown_path(path),
                          fmt::format("\"{}\" is not a known scheme", scheme),
                          "use a path, http://, https://, s3://, gs:// or pipe:");
  }
  return *storage;
}

std::unique_ptr<Storage> Stores::make(const std::string& scheme) const {
  if (scheme == "http" || scheme == "https") return make_http_storage(*caller_);
  if (scheme == "s3") {
    return make_s3_storage(aws_account(settings_, process_variables()), *caller_);
  }
  if (scheme == "gs") return make_s3_storage(google_account(process_variables()), *caller_);
  if (scheme == "pipe") {
    return make_pipe_storage(
        std::chrono::seconds(std::max(1L, std::lround(settings_.stall_timeout_s))));
  }
  return nullptr;
}

std::unique_ptr<Object> Stores::open(const std::string& path) const {
  const Storage& origin = of(path);
  if (cache_ && goes_through_cache(path)) return cache_->open(origin, path);
  if (core::is_compressed(path)) {
    if (unpacks_) return open_unpacked(origin, path);
    throw core::DataError(core::shown_path(path),
                          "is compressed, and there is no cache for its contents",
                          "name a folder in /data/cache, or decompress it");
  }
  return origin.open(path);
}

void Stores::prefetch(const std::vector<std::string>& paths) const {
  if (!cache_) return;
  std::vector<Cache::Wanted> wanted;
  for (const std::string& path : paths) {
    if (goes_through_cache(path)) wanted.push_back({&of(path), path});
  }
  cache_->prefetch(std::move(wanted));
}

}  // namespace scaletrain::storage
