#include "lib/train/rules/bad_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {
namespace {

constexpr std::size_t kMostWarnings = 5;

}  // namespace

BadSamples::BadSamples(const recipe::Recipe& recipe, int rank,
                       std::shared_ptr<core::Housekeeping> housekeeping)
    : file_(std::filesystem::path(recipe.output) / "bad_samples" / fmt::format("{}.jsonl", rank)),
      max_rate_(recipe.data.bad_samples.max_rate),
      housekeeping_(std::move(housekeeping)) {}

void BadSamples::record(const std::vector<data::BadSample>& skipped) {
  for (const data::BadSample& sample : skipped) {
    if (!known_.insert(sample.place).second) continue;
    append(sample);
    if (known_.size() > kMostWarnings) continue;
    core::warn("{}: {}; it is skipped", sample.place, sample.reason);
    if (known_.size() == kMostWarnings) core::warn("more of them: {}", file_.string());
  }
}

void BadSamples::append(const data::BadSample& sample) {
  const nlohmann::ordered_json line{{"shard", sample.shard}, {"key", sample.key},
                                    {"place", sample.place}, {"reason", sample.reason},
                                    {"epoch", sample.epoch}, {"position", sample.position}};
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  std::ofstream stream(file_, std::ios::app);
  stream << core::json_text(line) << '\n';
  stream.flush();
  if (stream.good()) return;
  housekeeping_->failed(file_.string(), "cannot be written", "bad samples are not listed");
}

void BadSamples::check(const std::string& split, std::int64_t skipped, std::int64_t samples) const {
  const std::int64_t of = std::max(samples, kFewest);
  if (static_cast<double>(skipped) <= max_rate_ * static_cast<double>(of)) return;
  throw core::DataError(
      fmt::format("/data/{}", split),
      fmt::format("{} of {} samples do not decode: more than /data/bad_samples/max_rate, which is "
                  "{}",
                  skipped, samples, max_rate_),
      fmt::format("look at {}, repair the shards, or allow more", file_.parent_path().string()));
}

}  // namespace scaletrain::train
