#include "lib/observe/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::observe {

namespace {

bool ends_inside_a_line(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

bool is_empty(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && status.st_size == 0;
}

}  // namespace

// nlohmann's dump writes doubles so that they read back to the same bits, and null for what is not
// finite.
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
  if (record.exchanged_bytes) line["exchanged_bytes"] = *record.exchanged_bytes;
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

MetricsWriter::MetricsWriter(std::filesystem::path file,
                             std::shared_ptr<core::Housekeeping> housekeeping)
    : file_(std::move(file)), housekeeping_(std::move(housekeeping)) {
  open_file();
}

void MetricsWriter::open_file() {
  core::Descriptor fd(open(file_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return report(errno);
  torn_ = ends_inside_a_line(fd.get());
  fd_ = std::move(fd);
}

// The name may be gone, or another file's that somebody put there.
void MetricsWriter::keep_file() {
  struct stat held = {}, named = {};
  const bool is_there = stat(file_.c_str(), &named) == 0;
  if (!is_there && errno != ENOENT) return;
  if (is_there && fstat(fd_.get(), &held) == 0 && held.st_ino == named.st_ino &&
      held.st_dev == named.st_dev) {
    return;
  }
  if (!is_there) core::warn("{}: was removed while it is written: it begins anew", file_.string());
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  open_file();
}

void MetricsWriter::write(const TrainRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const EvalRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const StragglerRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const LostReplicaRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const SaveRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const MirrorRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::write(const ReplicaRecord& record) {
  append(to_json_line(record, core::unix_time()));
}

void MetricsWriter::append(std::string line) {
  if (!fd_) open_file();
  if (!fd_) return;
  keep_file();
  if (is_empty(fd_.get())) {
    line.insert(line.size() - 1, fmt::format(",\"format\":{}", kMetricsFormat));
  }
  if (torn_) line.insert(0, 1, '\n');
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {  // also behind a part: a full disk and a limit take what they can
      report(errno);
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  const std::size_t done = line.size() - rest.size();
  if (done > 0) torn_ = line[done - 1] != '\n';
}

void MetricsWriter::report(int error) {
  housekeeping_->failed(file_.string(), core::errno_text(error),
                        "training goes on without the lines that cannot be written");
}

}  // namespace scaletrain::observe
