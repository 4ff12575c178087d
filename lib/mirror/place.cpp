#include "lib/mirror/place.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/text/url.h"

namespace scaletrain::mirror {
namespace {

// An object place that owns its connections.
class BucketPlace : public Place {
 public:
  BucketPlace(const std::string& path, const recipe::Storage& settings,
              HousekeepingPtr housekeeping)
      : stores_(settings, std::nullopt),
        place_(make_object_place(
            path, stores_.of(path), [this] { stores_.cancel(); }, std::move(housekeeping))) {}

  std::int64_t put(const OpenCheckpoint& checkpoint, const std::function<void()>& moved) override {
    return place_->put(checkpoint, moved);
  }
  void retain(std::int64_t newest, const format::Retention& retention) override {
    place_->retain(newest, retention);
  }
  void cancel() override { place_->cancel(); }

 private:
  storage::Stores stores_;
  std::unique_ptr<Place> place_;
};

}  // namespace

std::unique_ptr<Place> make_place(const std::string& path, core::Disk& disk,
                                  const recipe::Storage& settings, HousekeepingPtr housekeeping) {
  if (core::is_url(path)) {
    return std::make_unique<BucketPlace>(path, settings, std::move(housekeeping));
  }
  return make_folder_place(path, disk, std::move(housekeeping));
}

std::string checkpoints_of(const std::string& place) {
  return fmt::format("{}/checkpoints", place);
}

}  // namespace scaletrain::mirror
