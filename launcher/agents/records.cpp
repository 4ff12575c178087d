#include "launcher/agents/records.h"

#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/core/json_text.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using RecordJson = nlohmann::json;

// Other bytes than UTF-8 may stand in a worker's last lines.
std::string line(const RecordJson& value) { return core::json_text(value); }

RecordJson to_record(const LastRound& last) {
  return {{"generation", last.generation},
          {"round", last.round},
          {"rank", last.rank},
          {"nodes", last.nodes}};
}

LastRound last_round(const RecordJson& value) {
  return {.generation = value.at("generation"),
          .round = value.at("round"),
          .rank = value.at("rank"),
          .nodes = value.at("nodes")};
}

RecordJson to_record(const Candidate& candidate) {
  return {{"agent", candidate.agent},
          {"host", candidate.host},
          {"addresses", candidate.addresses},
          {"port", candidate.port}};
}

Candidate candidate(const RecordJson& value) {
  return {.agent = value.at("agent"),
          .host = value.at("host"),
          .addresses = value.at("addresses"),
          .port = value.at("port")};
}

RecordJson to_record(const Join& join) {
  return {{"candidate", to_record(join.candidate)},
          {"proof", join.proof},
          {"nnodes", join.nnodes},
          {"node", join.node},
          {"nproc", join.nproc},
          {"last", to_record(join.last)}};
}

Join join(const RecordJson& value) {
  return {.candidate = candidate(value.at("candidate")),
          .proof = value.at("proof"),
          .nnodes = value.at("nnodes"),
          .node = value.at("node"),
          .nproc = value.at("nproc"),
          .last = last_round(value.at("last"))};
}

RecordJson to_record(const std::optional<Failure>& failure) {
  if (!failure) return nullptr;
  return {{"host", failure->host},
          {"node", failure->node},
          {"device", failure->device},
          {"rank", failure->rank},
          {"local_rank", failure->local_rank},
          {"pid", failure->pid},
          {"code", failure->status.code},
          {"signal", failure->status.signal},
          {"time", failure->time},
          {"cause", failure->cause},
          {"step", failure->step},
          {"error_file", failure->error_file},
          {"log", failure->log},
          {"last_lines", failure->last_lines},
          {"others", failure->others},
          {"followed", failure->followed},
          {"hang", failure->hang},
          {"hang_lines", failure->hang_lines}};
}

std::optional<Failure> failure(const RecordJson& value) {
  if (value.is_null()) return std::nullopt;
  return Failure{.host = value.at("host"),
                 .node = value.at("node"),
                 .device = value.at("device"),
                 .rank = value.at("rank"),
                 .local_rank = value.at("local_rank"),
                 .pid = value.at("pid"),
                 .status = {.code = value.at("code"), .signal = value.at("signal")},
                 .time = value.at("time"),
                 .cause = value.at("cause"),
                 .step = value.at("step"),
                 .error_file = value.at("error_file"),
                 .log = value.at("log"),
                 .last_lines = value.at("last_lines"),
                 .others = value.at("others"),
                 .followed = value.at("followed"),
                 .hang = value.at("hang"),
                 .hang_lines = value.at("hang_lines")};
}

RecordJson to_record(const Report& report) {
  return {{"agent", report.agent},
          {"round", report.round},
          {"outcome", static_cast<int>(report.outcome)},
          {"signal", report.signal},
          {"status", report.status},
          {"reason", report.reason},
          {"failure", to_record(report.failure)}};
}

Report report(const RecordJson& value) {
  return {.agent = value.at("agent"),
          .round = value.at("round"),
          .outcome = static_cast<Outcome>(value.at("outcome").get<int>()),
          .signal = value.at("signal"),
          .status = value.at("status"),
          .reason = value.at("reason"),
          .failure = failure(value.at("failure"))};
}

template <class Reader>
auto read_record(const std::string& text, const Reader& reader) {
  try {
    return reader(RecordJson::parse(text));
  } catch (const RecordJson::exception&) {
    throw core::InternalError(
        "the launchers' store",
        "holds what is no record of a launcher: " + core::escape_control(text.substr(0, 200)),
        "give every node the same version of scaletrain");
  }
}

}  // namespace

std::string proof_of(const std::string& role, const std::string& job, const std::string& token) {
  return core::Sha256().update(line(RecordJson{"scaletrain", role, job, token})).hex();
}

std::string to_line(const Hello& record) {
  return line({{"job", record.job},
               {"proof", record.proof},
               {"agent", record.agent},
               {"host", record.host},
               {"generation", record.generation}});
}

template <>
Hello parse<Hello>(const std::string& text) {
  return read_record(text, [](const RecordJson& value) {
    return Hello{.job = value.at("job"),
                 .proof = value.at("proof"),
                 .agent = value.at("agent"),
                 .host = value.at("host"),
                 .generation = value.at("generation")};
  });
}

std::string to_line(const Candidate& record) { return line(to_record(record)); }

template <>
Candidate parse<Candidate>(const std::string& text) {
  return read_record(text, candidate);
}

std::string to_line(const Message& record) {
  RecordJson value = RecordJson::object();
  if (record.join) value["join"] = to_record(*record.join);
  if (record.report) value["report"] = to_record(*record.report);
  if (!record.leaves.empty()) value["leaves"] = record.leaves;
  if (!record.heard.empty()) value["heard"] = record.heard;
  return line(value);
}

template <>
Message parse<Message>(const std::string& text) {
  return read_record(text, [](const RecordJson& value) {
    Message message;
    if (value.contains("join")) message.join = join(value.at("join"));
    if (value.contains("report")) message.report = report(value.at("report"));
    message.leaves = value.value("leaves", "");
    message.heard = value.value("heard", "");
    return message;
  });
}

std::string to_line(const Board& record) {
  RecordJson candidates = RecordJson::array();
  for (const Candidate& one : record.candidates) candidates.push_back(to_record(one));
  return line({{"phase", static_cast<int>(record.phase)},
               {"generation", record.generation},
               {"round", record.round},
               {"nodes", record.nodes},
               {"verdicts", record.verdicts},
               {"restart", record.restart},
               {"store_host", record.store_host},
               {"store_port", record.store_port},
               {"plan", record.plan},
               {"reason", record.reason},
               {"candidates", std::move(candidates)}});
}

template <>
Board parse<Board>(const std::string& text) {
  return read_record(text, [](const RecordJson& value) {
    Board board{.phase = static_cast<Phase>(value.at("phase").get<int>()),
                .generation = value.at("generation"),
                .round = value.at("round"),
                .nodes = value.at("nodes"),
                .verdicts = value.at("verdicts"),
                .restart = value.at("restart"),
                .store_host = value.at("store_host"),
                .store_port = value.at("store_port"),
                .plan = value.at("plan"),
                .reason = value.at("reason"),
                .candidates = {}};
    for (const RecordJson& one : value.at("candidates")) board.candidates.push_back(candidate(one));
    return board;
  });
}

std::string to_line(const Place& record) {
  return line({{"round", record.round},
               {"rank", record.rank},
               {"refused", record.refused},
               {"given_up", record.given_up}});
}

template <>
Place parse<Place>(const std::string& text) {
  return read_record(text, [](const RecordJson& value) {
    return Place{.round = value.at("round"),
                 .rank = value.at("rank"),
                 .refused = value.at("refused"),
                 .given_up = value.at("given_up")};
  });
}

std::string to_line(const Verdict& record) {
  return line({{"round", record.round},
               {"again", record.again},
               {"code", record.code},
               {"text", record.text},
               {"failure", to_record(record.failure)}});
}

template <>
Verdict parse<Verdict>(const std::string& text) {
  return read_record(text, [](const RecordJson& value) {
    return Verdict{.round = value.at("round"),
                   .again = value.at("again"),
                   .code = value.at("code"),
                   .text = value.at("text"),
                   .failure = failure(value.at("failure"))};
  });
}

}  // namespace scaletrain::launcher
