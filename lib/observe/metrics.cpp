#include "lib/observe/metrics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/clock.h"

namespace scaletrain::observe {
namespace {

nlohmann::ordered_json by_row(const core::RowSeconds& seconds) {
  nlohmann::ordered_json rows;
  for (std::size_t i = 0; i < core::kTimeRows; ++i) {
    rows[std::string(core::to_text(static_cast<core::TimeRow>(i)))] = seconds[i];
  }
  return rows;
}

void add_speed(const ModelSpeed& speed, nlohmann::ordered_json& line) {
  line["step_flops"] = speed.step_flops;
  if (speed.recomputed_flops > 0) line["recomputed_flops"] = speed.recomputed_flops;
  line["tflops_per_s"] = speed.tflops_per_s;
  if (speed.mfu) line["mfu"] = *speed.mfu;
}

}  // namespace

// nlohmann's dump writes doubles so that they read back bit for bit, and null for non-finite
// values.
std::string to_json_line(const TrainRecord& record, double time) {
  nlohmann::ordered_json line{
      {"event", "train"},      {"attempt", record.attempt}, {"step", record.step},
      {"epoch", record.epoch}, {"samples", record.samples}, {"loss", record.loss},
      {"lr", record.lr}};
  if (record.weight_decay) line["weight_decay"] = *record.weight_decay;
  if (record.image_size) line["image_size"] = *record.image_size;
  if (record.batch) line["batch"] = *record.batch;
  line["grad_norm"] = record.grad_norm;
  if (record.loss_scale) line["loss_scale"] = *record.loss_scale;
  for (const auto& [name, value] : record.model) line["model"][name] = value;
  line["samples_per_s"] = record.samples_per_s;
  if (record.tokens_per_s) line["tokens_per_s"] = *record.tokens_per_s;
  if (record.speed) add_speed(*record.speed, line);
  if (record.exchanged_bytes) line["exchanged_bytes"] = *record.exchanged_bytes;
  if (record.loader_threads) line["loader_threads"] = *record.loader_threads;
  line["data_time"] = record.data_time;
  line["compute_time"] = record.compute_time;
  line["read_time"] = record.read_time;
  line["decode_time"] = record.decode_time;
  line["augment_time"] = record.augment_time;
  line["memory_bytes"] = record.memory_bytes;
  line["order_digest"] = fmt::format("{:016x}", record.order_digest);
  line["skipped_samples"] = record.skipped_samples;
  if (record.replica) line["replica"] = *record.replica;
  line["time"] = time;
  return line.dump();
}

std::string to_json_line(const EvalRecord& record, double time) {
  nlohmann::ordered_json line{{"event", "eval"},
                              {"attempt", record.attempt},
                              {"split", record.split},
                              {"step", record.step},
                              {"epoch", record.epoch}};
  for (const recipe::Measured& one : record.measures) line[one.measure->name] = one.value;
  if (!record.weights.empty()) line["weights"] = record.weights;
  line["count"] = record.count;
  line["skipped"] = record.skipped;
  line["time"] = time;
  return line.dump();
}

std::string to_json_line(const LedgerRecord& record, double time) {
  nlohmann::ordered_json line{{"event", "ledger"},
                              {"attempt", record.attempt},
                              {"step", record.step},
                              {"rank", record.rank},
                              {"seconds", by_row(record.seconds)}};
  if (record.mean) line["mean"] = by_row(*record.mean);
  if (record.straggler_s) line["straggler_s"] = *record.straggler_s;
  line["time"] = time;
  return line.dump();
}

// A unit without weights, or with weights of zero, has no ratio.
std::string to_json_line(const NormsRecord& record, double time) {
  nlohmann::ordered_json line{
      {"event", "norms"}, {"attempt", record.attempt}, {"step", record.step}};
  for (const NormsRecord::Unit& one : record.units) {
    if (one.weight == 0 && one.gradient == 0 && one.update == 0) continue;
    line["weight"][one.unit] = one.weight;
    line["gradient"][one.unit] = one.gradient;
    if (one.weight > 0) line["update_ratio"][one.unit] = one.update / one.weight;
  }
  line["time"] = time;
  return line.dump();
}

std::string to_json_line(const StragglerRecord& record, double time) {
  return nlohmann::ordered_json{{"event", "straggler"},
                                {"attempt", record.attempt},
                                {"step", record.step},
                                {"rank", record.slow.rank},
                                {"phase", record.slow.phase},
                                {"own_time", record.slow.seconds},
                                {"median_time", record.slow.median},
                                {"time", time}}
      .dump();
}

std::string to_json_line(const LostReplicaRecord& record, double time) {
  return nlohmann::ordered_json{{"event", "lost_replica"},
                                {"attempt", record.attempt},
                                {"step", record.step},
                                {"replica", record.replica},
                                {"kept_step", record.kept_step},
                                {"left", record.left},
                                {"time", time}}
      .dump();
}

std::string to_json_line(const SaveRecord& record, double time) {
  return nlohmann::ordered_json{{"event", "checkpoint"},         {"attempt", record.attempt},
                                {"step", record.step},           {"bytes", record.bytes},
                                {"linked", record.linked_bytes}, {"stall_time", record.stall_s},
                                {"write_time", record.write_s},  {"time", time}}
      .dump();
}

std::string to_json_line(const MirrorRecord& record, double time) {
  return nlohmann::ordered_json{
      {"event", "mirror"},     {"attempt", record.attempt},  {"step", record.step},
      {"bytes", record.bytes}, {"copy_time", record.copy_s}, {"behind", record.behind},
      {"time", time}}
      .dump();
}

std::string to_json_line(const ReplicaRecord& record, double time) {
  return nlohmann::ordered_json{{"event", "replica"},    {"attempt", record.attempt},
                                {"step", record.step},   {"bytes", record.bytes},
                                {"nodes", record.nodes}, {"time", time}}
      .dump();
}

std::string to_json_line(const ComparisonRecord& record, double time) {
  return nlohmann::ordered_json{{"event", "comparison"},        {"attempt", record.attempt},
                                {"step", record.step},          {"equal", record.equal},
                                {"stall_time", record.seconds}, {"time", time}}
      .dump();
}

MetricsWriter::MetricsWriter(std::filesystem::path file,
                             std::shared_ptr<core::Housekeeping> housekeeping)
    : lines_(std::move(file), std::move(housekeeping),
             fmt::format(",\"format\":{}", kMetricsFormat)) {}

void MetricsWriter::write(const TrainRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const EvalRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const LedgerRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const NormsRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const StragglerRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const LostReplicaRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const SaveRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const MirrorRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const ReplicaRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const ComparisonRecord& record) {
  lines_.append(to_json_line(record, core::unix_time()));
}

}  // namespace scaletrain::observe
