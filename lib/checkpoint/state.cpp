#include "lib/checkpoint/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/core/error.h"
#include "lib/core/text.h"
#include "lib/format/json_fields.h"

namespace scaletrain::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kStateFormat = 1;

// 64 bits as text: readers that hold numbers as doubles would lose the last eleven.
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t parse_hex(const std::string& text, const std::string& place) {
  if (const auto value = core::parse_number<std::uint64_t>(text, 16)) return *value;
  throw core::CheckpointError(place, "is not a hexadecimal number", "use another checkpoint");
}

int small(format::JsonFields& fields, const std::string& key, int lowest) {
  const std::int64_t value = fields.integer(key, lowest);
  return static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
}

std::vector<std::vector<std::int64_t>> parse_layout(const nlohmann::json& json,
                                                    const std::string& place) {
  const auto check = [&](bool fits) {
    if (fits) return;
    throw core::CheckpointError(place, "is not a list of lists of whole numbers from 0",
                                "use another checkpoint");
  };
  std::vector<std::vector<std::int64_t>> layout;
  check(json.is_array());
  for (const nlohmann::json& bucket : json) {
    check(bucket.is_array());
    layout.emplace_back();
    for (const nlohmann::json& number : bucket) {
      check(number.is_number_unsigned());
      layout.back().push_back(number.get<std::int64_t>());
    }
  }
  return layout;
}

std::vector<std::int64_t> parse_sizes(const nlohmann::json& json, const std::string& place) {
  std::vector<std::int64_t> sizes;
  bool sound = json.is_array();
  for (const nlohmann::json& size : json) {
    sound = sound && size.is_number_integer() && size >= -1;
    if (sound) sizes.push_back(size.get<std::int64_t>());
  }
  if (!sound) {
    throw core::CheckpointError(place, "is not a list of whole numbers from -1",
                                "use another checkpoint");
  }
  return sizes;
}

}  // namespace

std::string render_state(const TrainState& state) {
  const Json json = {
      {"format", kStateFormat},
      {"step", state.step},
      {"epoch", state.epoch},
      {"step_in_epoch", state.step_in_epoch},
      {"samples", state.samples},
      {"global_batch", state.global_batch},
      {"order_digest", hex(state.order_digest)},
      {"order_version", state.order_version},
      {"trained_s", state.trained_s},
      {"seen_s", state.seen_s},
      {"best_metric", state.best_metric},
      {"best_step", state.best_step},
      {"validation_due", state.validation_due},
      {"skipped_steps", state.skipped_steps},
      {"skipped_samples", state.skipped_samples},
      {"set_samples", state.set_samples},
      {"set_digest", state.set_digest},
      {"per_device", state.per_device},
      {"shard_sizes", state.shard_sizes},
      {"schedule", state.schedule},
      {"scaler", state.scaler},
      {"random", state.random},
      {"bucket_layout", state.bucket_layout},
      {"world_size", state.world_size},
      {"threads", state.threads},
      {"cpu_capability", state.cpu_capability},
      {"torch_version", state.torch_version},
      {"device", state.device},
  };
  return json.dump() + "\n";
}

TrainState parse_state(std::string_view text, const std::string& place) {
  const nlohmann::json json = format::parse_object(text, place);
  format::JsonFields fields(json, place);
  const std::int64_t version = fields.integer("format", 1);
  if (version > kStateFormat) {
    throw core::CheckpointError(
        place, fmt::format("has format {}; this program reads up to {}", version, kStateFormat),
        "use the program that wrote it (manifest.json names it), or a newer one");
  }
  TrainState state;
  state.step = fields.integer("step", 0);
  state.epoch = fields.integer("epoch", 0);
  state.step_in_epoch = fields.integer("step_in_epoch", 0);
  state.samples = fields.integer("samples", 0);
  state.global_batch = fields.integer("global_batch", 0);
  state.order_digest = parse_hex(fields.text("order_digest"), place + ": /order_digest");
  state.order_version = small(fields, "order_version", 0);
  state.trained_s = fields.number("trained_s");
  state.seen_s = fields.has("seen_s") ? fields.number("seen_s") : state.trained_s;
  state.best_metric = fields.number("best_metric");
  state.best_step = fields.integer("best_step", -1);
  if (fields.has("validation_due")) {
    const nlohmann::json& due = fields.value("validation_due");
    if (!due.is_boolean()) {
      throw core::CheckpointError(place + ": /validation_due", "is not true or false",
                                  "use another checkpoint");
    }
    state.validation_due = due.get<bool>();
  }
  state.skipped_steps = small(fields, "skipped_steps", 0);
  if (fields.has("skipped_samples")) state.skipped_samples = fields.integer("skipped_samples", 0);
  if (fields.has("set_samples")) state.set_samples = fields.integer("set_samples", 0);
  if (fields.has("set_digest")) state.set_digest = fields.text("set_digest");
  if (fields.has("per_device")) state.per_device = fields.integer("per_device", 0);
  if (fields.has("shard_sizes")) {
    state.shard_sizes = parse_sizes(fields.value("shard_sizes"), place + ": /shard_sizes");
  }
  state.schedule = fields.value("schedule");
  state.scaler = fields.value("scaler");
  state.random = fields.value("random");
  state.bucket_layout = parse_layout(fields.value("bucket_layout"), place + ": /bucket_layout");
  state.world_size = small(fields, "world_size", 1);
  state.threads = small(fields, "threads", 1);
  state.cpu_capability = fields.text("cpu_capability");
  state.torch_version = fields.text("torch_version");
  state.device = fields.text("device");
  fields.done();
  return state;
}

}  // namespace scaletrain::checkpoint
