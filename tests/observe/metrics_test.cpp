#include "lib/observe/metrics.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/observe/measures.h"
#include "tests/observe/observe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {

namespace {

TrainRecord a_train_record() {
  return {.attempt = 1,
          .step = 20,
          .epoch = 2,
          .samples = 1280,
          .loss = 0.30000000000000004,
          .lr = 0.001,
          .grad_norm = 2,
          .samples_per_s = 512.5,
          .data_time = 0.004,
          .compute_time = 0.12,
          .read_time = 1e-05,
          .decode_time = 0.0007,
          .augment_time = 0.0002,
          .memory_bytes = 123456789,
          .order_digest = 0x00ab,
          .skipped_samples = 3};
}

// The lines of a file without their "time", which must be there and come last.
std::vector<std::string> lines_without_time(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    REQUIRE(end != std::string::npos);
    const std::string line = text.substr(start, end - start);
    lines.push_back(line.substr(0, line.find(",\"time\":")));
    start = end + 1;
  }
  return lines;
}

constexpr const char* kEvalStart =
    R"({"event":"eval","attempt":0,"split":"val","step":43,"epoch":0,"top1":0.985,"top5":1.0,)"
    R"("loss":0.5,"count":200,"skipped":2)";
const EvalRecord kEval{.split = "val",
                       .step = 43,
                       .measures = image_measures(0.985, 1, 0.5),
                       .count = 200,
                       .counted = "samples",
                       .skipped = 2};

}  // namespace

TEST_CASE("a train record is one line with every field of metrics.md, in its order") {
  CHECK(to_json_line(a_train_record(), 1700000000.25) ==
        R"({"event":"train","attempt":1,"step":20,"epoch":2,"samples":1280,)"
        R"("loss":0.30000000000000004,"lr":0.001,"grad_norm":2.0,"samples_per_s":512.5,)"
        R"("data_time":0.004,"compute_time":0.12,"read_time":1e-05,"decode_time":0.0007,)"
        R"("augment_time":0.0002,"memory_bytes":123456789,)"
        R"("order_digest":"00000000000000ab","skipped_samples":3,"time":1700000000.25})");
}

TEST_CASE(
    "a ledger record has each row, and for several ranks their mean and how far the slowest is "
    "behind") {
  LedgerRecord record{.attempt = 1, .step = 20, .seconds = {0.5, 1, 0, 2, 4, 0.25, 1, 0, 0, 0.125}};
  const std::string rows =
      R"("seconds":{"start_up":0.5,"data_wait":1.0,"host_to_device":0.0,"forward":2.0,)"
      R"("backward":4.0,"exposed_communication":0.25,"optimizer":1.0,"evaluation":0.0,)"
      R"("checkpoint_stall":0.0,"other":0.125})";
  CHECK(to_json_line(record, 7) ==
        R"({"event":"ledger","attempt":1,"step":20,"rank":0,)" + rows + R"(,"time":7.0})");
  record.rank = 3;
  record.mean = core::RowSeconds{1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  record.straggler_s = 8.5;
  const std::string line = to_json_line(record, 7);
  CHECK(line.find(R"("rank":3,)" + rows + R"(,"mean":{"start_up":1.0,)") != std::string::npos);
  CHECK(line.ends_with(R"("other":1.0},"straggler_s":8.5,"time":7.0})"));
}

TEST_CASE("a train record says whose it is where replicas train alone, an eval record of what") {
  TrainRecord record = a_train_record();
  record.replica = 0;
  CHECK(to_json_line(record, 1).ends_with(R"("skipped_samples":3,"replica":0,"time":1.0})"));
  EvalRecord eval = kEval;
  eval.weights = "mean";
  CHECK(to_json_line(eval, 1).ends_with(
      R"("loss":0.5,"weights":"mean","count":200,"skipped":2,"time":1.0})"));
}

TEST_CASE("a record of norms has each unit's, and a ratio where it has weights") {
  const NormsRecord record{.attempt = 1,
                           .step = 20,
                           .units = {{.unit = "stem", .weight = 4, .gradient = 0.5, .update = 1},
                                     {.unit = "zero", .gradient = 2, .update = 1},
                                     {.unit = "pool"}}};
  CHECK(to_json_line(record, 7) ==
        R"({"event":"norms","attempt":1,"step":20,"weight":{"stem":4.0,"zero":0.0},)"
        R"("gradient":{"stem":0.5,"zero":2.0},"update_ratio":{"stem":0.25},"time":7.0})");
}

TEST_CASE("a lost replica's record is one line with every field of metrics.md, in its order") {
  const LostReplicaRecord record{
      .attempt = 1, .step = 30, .replica = 2, .kept_step = 24, .left = 3};
  CHECK(to_json_line(record, 1.5) ==
        R"({"event":"lost_replica","attempt":1,"step":30,"replica":2,"kept_step":24,"left":3,)"
        R"("time":1.5})");
}

TEST_CASE("a train record has the loss scale where losses are scaled") {
  TrainRecord record = a_train_record();
  record.loss_scale = 65536;
  CHECK(to_json_line(record, 1).find(R"("grad_norm":2.0,"loss_scale":65536.0,"samples_per_s":)") !=
        std::string::npos);
}

TEST_CASE("a train record of a language model has its tokens a second") {
  TrainRecord record = a_train_record();
  record.tokens_per_s = 1024;
  CHECK(to_json_line(record, 1).find(
            R"("samples_per_s":512.5,"tokens_per_s":1024.0,"data_time":)") != std::string::npos);
}

TEST_CASE("a train record has the model's FLOPs and speed once they are counted") {
  TrainRecord record = a_train_record();
  record.speed = ModelSpeed{.step_flops = 2e9, .tflops_per_s = 0.5};
  CHECK(to_json_line(record, 1).find(
            R"("samples_per_s":512.5,"step_flops":2000000000.0,"tflops_per_s":0.5,"data_time":)") !=
        std::string::npos);
  record.speed->recomputed_flops = 1e9;
  record.speed->mfu = 0.25;
  CHECK(to_json_line(record, 1).find(
            R"("recomputed_flops":1000000000.0,"tflops_per_s":0.5,"mfu":0.25,"data_time":)") !=
        std::string::npos);
}

TEST_CASE("a train record has what the model counted, by name, where it counts anything") {
  TrainRecord record = a_train_record();
  record.model = {{"balance_loss", 2.5}, {"busiest_share.0", 0.5}};
  CHECK(
      to_json_line(record, 1).find(
          R"("grad_norm":2.0,"model":{"balance_loss":2.5,"busiest_share.0":0.5},"samples_per_s":)") !=
      std::string::npos);
}

TEST_CASE("an eval record is one line with every field of metrics.md, in its order") {
  CHECK(to_json_line(kEval, 1.5) == kEvalStart + std::string(R"(,"time":1.5})"));
}

TEST_CASE("a straggler record is one line with every field of metrics.md, in its order") {
  const StragglerRecord record{
      .attempt = 1,
      .step = 30,
      .slow = {.rank = 5, .phase = "data", .seconds = 0.5, .median = 0.25}};
  CHECK(to_json_line(record, 1.5) ==
        R"({"event":"straggler","attempt":1,"step":30,"rank":5,"phase":"data","own_time":0.5,)"
        R"("median_time":0.25,"time":1.5})");
}

TEST_CASE("a checkpoint's record is one line with every field of metrics.md, in its order") {
  const SaveRecord record{.attempt = 1,
                          .step = 30,
                          .bytes = 1000,
                          .linked_bytes = 600,
                          .stall_s = 0.25,
                          .write_s = 0.5};
  CHECK(to_json_line(record, 1.5) ==
        R"({"event":"checkpoint","attempt":1,"step":30,"bytes":1000,"linked":600,)"
        R"("stall_time":0.25,"write_time":0.5,"time":1.5})");
}

TEST_CASE("a copy's record is one line with every field of metrics.md, in its order") {
  const MirrorRecord record{.attempt = 1, .step = 30, .bytes = 1000, .copy_s = 0.25, .behind = 2};
  CHECK(to_json_line(record, 1.5) ==
        R"({"event":"mirror","attempt":1,"step":30,"bytes":1000,"copy_time":0.25,"behind":2,)"
        R"("time":1.5})");
}

TEST_CASE("a record of copies in memory is one line with every field of metrics.md") {
  CHECK(
      to_json_line(ComparisonRecord{.attempt = 1, .step = 50, .equal = false, .seconds = 0.25},
                   1.5) ==
      R"({"event":"comparison","attempt":1,"step":50,"equal":false,"stall_time":0.25,"time":1.5})");
  const ReplicaRecord record{.attempt = 1, .step = 30, .bytes = 2000, .nodes = 2};
  CHECK(to_json_line(record, 1.5) ==
        R"({"event":"replica","attempt":1,"step":30,"bytes":2000,"nodes":2,"time":1.5})");
}

TEST_CASE("a loss reads back to the same bits") {
  for (const double loss :
       {0.1 + 0.2, 1.0 / 3, 2.302585092994046, 5e-324, 2.2250738585072014e-308, 1e22, 1e23, -0.0,
        std::numeric_limits<double>::max(), static_cast<double>(0.1F), 123456789012345680.0}) {
    TrainRecord record = a_train_record();
    record.loss = loss;
    const auto line = nlohmann::json::parse(to_json_line(record, 0));
    CHECK(std::bit_cast<std::uint64_t>(line["loss"].get<double>()) ==
          std::bit_cast<std::uint64_t>(loss));
  }
}

TEST_CASE("a weight decay and a size of images are written where they change") {
  TrainRecord record = a_train_record();
  for (const char* const key : {"weight_decay", "image_size", "batch"}) {
    CHECK_FALSE(nlohmann::json::parse(to_json_line(record, 0)).contains(key));
  }
  record.weight_decay = 0.04;
  record.image_size = 160;
  record.batch = 96;
  const auto line = nlohmann::json::parse(to_json_line(record, 0));
  CHECK(line["weight_decay"] == 0.04);
  CHECK(line["image_size"] == 160);
  CHECK(line["batch"] == 96);
}

TEST_CASE("a number that is not finite is null, so that the line stays JSON") {
  for (const double loss : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    TrainRecord record = a_train_record();
    record.loss = loss;
    CHECK(nlohmann::json::parse(to_json_line(record, 0))["loss"].is_null());
  }
}

TEST_CASE("a writer appends to what an earlier attempt wrote") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "metrics.jsonl";
  MetricsWriter(file).write(kEval);
  MetricsWriter(file).write(kEval);
  CHECK(lines_without_time(read_text(file)) == std::vector<std::string>{kEvalStart, kEvalStart});
}

TEST_CASE("the first line of a file, and no other, has the version of the format") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "metrics.jsonl";
  MetricsWriter(file).write(kEval);
  MetricsWriter(file).write(kEval);
  const std::string text = read_text(file);
  const std::size_t end = text.find('\n');
  CHECK(nlohmann::json::parse(text.substr(0, end)).at("format") == kMetricsFormat);
  CHECK_FALSE(nlohmann::json::parse(text.substr(end + 1)).contains("format"));
}

TEST_CASE("a torn last line of a killed run is ended before the next line") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "metrics.jsonl";
  write_text(file, R"({"event":"tra)");
  MetricsWriter(file).write(kEval);
  CHECK(lines_without_time(read_text(file)) ==
        std::vector<std::string>{R"({"event":"tra)", kEvalStart});
}

TEST_CASE("a writer that writes nothing leaves a torn line as it is") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "metrics.jsonl";
  write_text(file, "{\"event\"");
  { const MetricsWriter writer(file); }
  CHECK(read_text(file) == "{\"event\"");
}

TEST_CASE("a file or folder that is removed meanwhile is warned about and starts again") {
  const CapturedStderr captured;
  const test::TemporaryFolder folder;
  const auto file = folder.path / "run" / "metrics.jsonl";
  std::filesystem::create_directory(folder.path / "run");
  MetricsWriter writer(file);
  writer.write(kEval);
  std::filesystem::remove(file);
  writer.write(kEval);
  CHECK(lines_without_time(read_text(file)) == std::vector<std::string>{kEvalStart});
  std::filesystem::remove_all(folder.path / "run");
  writer.write(kEval);
  writer.write(kEval);
  CHECK(lines_without_time(read_text(file)) == std::vector<std::string>{kEvalStart, kEvalStart});
  const std::string warning =
      "warning: " + file.string() + ": was removed during the run: a new file is started\n";
  CHECK(captured.text() == warning + warning);
}

TEST_CASE("a file that another replaced goes on in the new one") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "metrics.jsonl";
  MetricsWriter writer(file);
  writer.write(kEval);
  write_text(folder.path / "other", R"({"event":"tra)");
  std::filesystem::rename(folder.path / "other", file);
  writer.write(kEval);
  CHECK(lines_without_time(read_text(file)) ==
        std::vector<std::string>{R"({"event":"tra)", kEvalStart});
}

TEST_CASE("a full disk is reported once and never stops the training") {
  const CapturedStderr captured;
  MetricsWriter writer("/dev/full");
  writer.write(kEval);
  writer.write(kEval);
  CHECK(captured.text() ==
        "warning: /dev/full: No space left on device (ENOSPC); training goes on without the lines "
        "that cannot be written\n");
}

TEST_CASE("a file that cannot be opened is reported once and never stops the training") {
  const CapturedStderr captured;
  const test::TemporaryFolder folder;
  const auto file = folder.path / "absent" / "metrics.jsonl";
  MetricsWriter writer(file);
  writer.write(kEval);
  CHECK(captured.text() == "warning: " + file.string() +
                               ": No such file or directory (ENOENT); training goes on without "
                               "the lines that cannot be written\n");
}

TEST_CASE("a line that was cut short by a full disk is ended once there is room again") {
  const CapturedStderr captured;
  const test::TemporaryFolder folder;
  const auto file = folder.path / "metrics.jsonl";
  MetricsWriter writer(file);
  // A limit on the size of files makes the kernel write the 30 bytes that fit, as a full disk does.
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);  // as the worker does
  rlimit old_limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 30;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  writer.write(kEval);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  std::signal(SIGXFSZ, ignored);
  writer.write(kEval);
  CHECK(lines_without_time(read_text(file)) ==
        std::vector<std::string>{std::string(kEvalStart).substr(0, 30), kEvalStart});
}

}  // namespace scaletrain::observe
