#include "lib/format/checkpoint/train_state.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

TrainState make_state() {
  return {.step = 1200,
          .epoch = 3,
          .step_in_epoch = 12,
          .samples = 76800,
          .global_batch = 64,
          .batch_ramp = {},
          .position = 0,
          .order_digest = 0xfedcba9876543210,
          .order_version = 1,
          .random_version = 2,
          .trained_s = 0.1 + 0.2,
          .seen_s = 0.25,
          .best_by = "top5",
          .best_metric = 0.985,
          .best_step = 900,
          .best_steps = {{900, 0.985}, {600, 0.97}},
          .validation_due = true,
          .stopping_by = "ema/top1",
          .stopping_best = 0.75,
          .stopping_step = 1100,
          .no_better = 3,
          .plateau_by = "loss",
          .plateau_best = 0.125,
          .plateau_step = 1000,
          .plateau_bad = 1,
          .plateau_cooldown = 2,
          .plateau_drops = 4,
          .anomaly_window = {{1199, 0.1 + 0.2, 1.5}, {1200, -2, 0}},
          .anomalies = 3,
          .anomaly_steps = {1100, 1150},
          .skipped_ranges = {{1000, 1001}, {1149, 1150}},
          .ema_updates = 1198,
          .swa_updates = 12,
          .skipped_steps = 2,
          .lost_positions = {{1, 640, 1280, 64, 16, 16}, {2, 0, 512, 64, 16, 16}},
          .skipped_samples = 31,
          .set_samples = 1400,
          .index_digest = "0f0f",
          .set_digest = "00ff",
          .per_device = 16,
          .auto_per_device = 8,
          .recompute_budget_mb = 512,
          .recomputed_units = {"h.0", "h.2"},
          .stage_begins = {0, 2},
          .shard_sizes = {350, -1, 0},
          .shard_digests = {(std::int64_t{1} << 52) - 1, -1, 0},
          .schedule = {{"step", 1200}, {"lr", 0.001}},
          .scaler = {{"scale", 65536.0}},
          .random = {{"seed", "00000000000004d2"}},
          .bucket_layout = {{3, 2}, {1, 0}, {}},
          .world_size = 4,
          .threads = 2,
          .cpu_capability = "AVX2",
          .torch_version = "2.11.0",
          .device = "cpu",
          .exchange = "shm"};
}

std::string state_error(const std::string& text) {
  return test::message_of<core::CheckpointError>([&] { parse_state(text, "state.json"); });
}

std::string error_where(const std::string& from, const std::string& to) {
  const std::string text = render_state(make_state());
  REQUIRE(text.find(from) != std::string::npos);
  return state_error(test::replaced(text, from, to));
}

}  // namespace

TEST_CASE("state.json keeps every field") {
  const TrainState state = make_state();
  const std::string text = render_state(state);
  // Written again it is the same text, so no field was lost or changed.
  CHECK(render_state(parse_state(text, "state.json")) == text);
  const TrainState read = parse_state(text, "state.json");
  CHECK(read.order_digest == 0xfedcba9876543210);
  CHECK(read.trained_s == 0.1 + 0.2);  // all bits of a double
  CHECK(read.bucket_layout == state.bucket_layout);
  CHECK(read.random_version == 2);
  CHECK(read.skipped_samples == 31);
  CHECK(read.lost_positions == make_state().lost_positions);
  CHECK(read.best_by == "top5");
  CHECK(read.validation_due);
  CHECK(read.stopping_by == "ema/top1");
  CHECK(read.no_better == 3);
  CHECK(read.plateau_best == 0.125);
  CHECK(read.ema_updates == 1198);
  CHECK((read.anomaly_window == make_state().anomaly_window));
  CHECK(read.anomaly_steps == std::vector<std::int64_t>{1100, 1150});
  CHECK(read.skipped_ranges == make_state().skipped_ranges);
  CHECK(read.swa_updates == 12);
  CHECK(read.seen_s == 0.25);
  CHECK(read.set_samples == 1400);
  CHECK(read.exchange == "shm");
  CHECK(read.per_device == 16);
  CHECK(read.auto_per_device == 8);
  CHECK(read.recompute_budget_mb == 512);
  CHECK(read.recomputed_units == std::vector<std::string>{"h.0", "h.2"});
  CHECK(read.stage_begins == std::vector<std::int64_t>{0, 2});
  CHECK(read.index_digest == "0f0f");
  CHECK(read.set_digest == "00ff");
  CHECK(read.shard_sizes == std::vector<std::int64_t>{350, -1, 0});
  CHECK(read.shard_digests == make_state().shard_digests);
  CHECK(text.find("\"order_digest\":\"fedcba9876543210\"") != std::string::npos);
  CHECK(nlohmann::json::parse(text).at("format") == 1);
  CHECK(nlohmann::json::parse(text).size() == 59);  // what TrainState has, and format
}

TEST_CASE("state.json keeps the ramp of a batch and the place in the epoch") {
  TrainState state = make_state();
  state.batch_ramp = {32, 32, 32};  // one step of 32, then 64
  state.samples = 32 + 1199 * 64;
  state.position = 12 * 64;
  const TrainState read = parse_state(render_state(state), "state.json");
  CHECK(read.batch_ramp == state.batch_ramp);
  CHECK(read.position == 768);
  CHECK(ramp_of(read) == core::BatchRamp{.start = 32, .increment = 32, .samples = 32});
  CHECK_FALSE(ramp_of(make_state()).has_value());
}

TEST_CASE("a field that is wrong, missing or unknown is named") {
  const std::string changed = "\n  the file is damaged or was changed by hand: use another copy";
  CHECK(error_where("\"step\":1200,\"epoch\"", "\"step\":-1,\"epoch\"") ==
        "state.json: /step: is -1\n  a whole number from 0 is allowed here");
  CHECK(error_where("\"threads\":2", "\"threads\":2.5") ==
        "state.json: /threads: is 2.5\n  a whole number from 1 is allowed here");
  CHECK(error_where("\"device\":\"cpu\"", "\"device\":1") ==
        "state.json: /device: is 1\n  text is allowed here");
  CHECK(error_where("[\"h.0\"", "[0") ==
        "state.json: /recomputed_units: is not a list of texts\n  use another checkpoint");
  CHECK(error_where("\"fedcba9876543210\"", "\"fedcba987654321x\"") ==
        "state.json: /order_digest: is not a hexadecimal number\n  use another checkpoint");
  CHECK(error_where("[[3,2]", "[[3,\"2\"]") ==
        "state.json: /bucket_layout: is not a list of lists of whole numbers from 0\n  use another "
        "checkpoint");
  for (const char* layout : {"{}", "[3]", "1"}) {
    CHECK(error_where("[[3,2],[1,0],[]]", layout) ==
          "state.json: /bucket_layout: is not a list of lists of whole numbers from 0\n  use "
          "another checkpoint");
  }
  for (const char* ranked : {"[900]", "[900,0.985,1]", "[-1,0.985]", R"([900,"0.985"])", "900",
                             "[900,0.985],[800,0.96]"}) {
    CHECK(error_where("[900,0.985]", ranked) ==
          "state.json: /best_steps: is not a list of [step, metric], the best first\n  use another "
          "checkpoint");
  }
  CHECK(error_where("[350,-1", "[350,-2") ==
        "state.json: /shard_sizes: is not a list of whole numbers from -1\n  use another "
        "checkpoint");
  CHECK(error_where("\"validation_due\":true", "\"validation_due\":1") ==
        "state.json: /validation_due: is not true or false\n  use another checkpoint");
  CHECK(error_where("\"samples\"", "\"sample\"") == "state.json: /samples: is missing" + changed);
  CHECK(error_where("\"samples\"", "\"more\":1,\"samples\"") ==
        "state.json: /more: is not a key of this format" + changed);
  CHECK(state_error("{\"format\":2}") ==
        "state.json: has format 2; this program reads up to 1\n  use the program that wrote it "
        "(manifest.json names it), or a newer one");
}

TEST_CASE("a missing field is named, unless older writers did not know it") {
  const TrainState state = make_state();
  const nlohmann::json whole = nlohmann::json::parse(render_state(state));
  std::size_t fields = 1;  // format
  visit_fields(state, [&](const std::string& name, const auto& /*value*/, const FieldRule& rule) {
    CAPTURE(name);
    ++fields;
    nlohmann::json less = whole;
    less.erase(name);
    // Writers knew both or none.
    if (name == "stopping_by") less.erase("stopping_best");
    if (name == "plateau_by") less.erase("plateau_best");
    if (name == "shard_sizes") less.erase("shard_digests");
    if (name == "anomalies") less.erase("anomaly_steps");
    const std::string expected =
        rule.later ? "nothing was thrown"
                   : "state.json: /" + name +
                         ": is missing\n  the file is damaged or was changed by hand: use another "
                         "copy";
    CHECK(state_error(less.dump()) == expected);
  });
  CHECK(fields == whole.size());
}

TEST_CASE("field_name finds the field by its place") {
  const TrainState state;
  CHECK(field_name(state, &state.step) == "step");  // where the state itself begins
  CHECK(field_name(state, &state.device) == "device");
}

TEST_CASE("the state of a writer that knew less is read") {
  std::string text = test::replaced(render_state(make_state()), "\"seen_s\":0.25,", "");
  text = test::replaced(text, "\"random_version\":2,", "");
  text = test::replaced(text,
                        "\"skipped_samples\":31,"
                        "\"lost_positions\":[[1,640,1280,64,16,16],[2,0,512,64,16,16]],"
                        "\"set_samples\":1400,\"index_digest\":\"0f0f\","
                        "\"set_digest\":\"00ff\","
                        "\"per_device\":16,\"auto_per_device\":8,\"recompute_budget_mb\":512,"
                        "\"recomputed_units\":[\"h.0\",\"h.2\"],\"stage_begins\":[0,2],"
                        "\"shard_sizes\":[350,-1,0],\"shard_digests\":[4503599627370495,-1,0],",
                        "");
  const TrainState state = parse_state(text, "state.json");
  CHECK(state.seen_s == state.trained_s);
  CHECK(state.random_version == 1);
  CHECK(state.per_device == 0);
  CHECK(state.skipped_samples == 0);
  CHECK(state.set_samples == 0);
  CHECK(state.auto_per_device == 0);
  CHECK(state.recomputed_units.empty());
  CHECK(state.stage_begins.empty());
  CHECK(state.shard_sizes.empty());
  CHECK(state.shard_digests.empty());
  CHECK(state.index_digest.empty());
}
