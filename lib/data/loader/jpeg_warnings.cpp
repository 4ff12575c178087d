#include "lib/data/loader/jpeg_warnings.h"

#include "lib/core/log.h"
#include "lib/core/text/hash.h"

namespace scaletrain::data {
namespace {

constexpr std::size_t kNamedPictures = 5;

}  // namespace

JpegWarnings::~JpegWarnings() {
  if (places_.size() <= kNamedPictures) return;
  core::warn("{} pictures were used although libjpeg warned of them", places_.size());
}

void JpegWarnings::add(const std::string& place, const std::string& warning) {
  const std::lock_guard lock(mutex_);
  if (!places_.insert(core::xxh3_64(place)).second || places_.size() > kNamedPictures) return;
  core::warn("{}: {}; it is used anyway{}", place, warning,
             places_.size() == kNamedPictures ? ", and more of them are only counted" : "");
}

std::int64_t JpegWarnings::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(places_.size());
}

}  // namespace scaletrain::data
