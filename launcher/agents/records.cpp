#include "launcher/agents/records.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "launcher/platform/record_json.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {

// The fields of each record. In this namespace, so that record_json.h finds them.

static void each_field(Is<Hello> auto& hello, const auto& field) {
  field("job", hello.job);
  field("proof", hello.proof);
  field("agent", hello.agent);
  field("host", hello.host);
  field("generation", hello.generation);
}

static void each_field(Is<LastRound> auto& last, const auto& field) {
  field("generation", last.generation);
  field("round", last.round);
  field("rank", last.rank);
  field("nodes", last.nodes);
  field("handed_over", last.handed_over);
}

static void each_field(Is<Candidate> auto& candidate, const auto& field) {
  field("agent", candidate.agent);
  field("host", candidate.host);
  field("addresses", candidate.addresses);
  field("port", candidate.port);
}

static void each_field(Is<Join> auto& join, const auto& field) {
  field("candidate", join.candidate);
  field("proof", join.proof);
  field("nnodes", join.nnodes);
  field("node", join.node);
  field("nproc", join.nproc);
  field("network", join.network);
  field("replicas", join.replicas);
  field("last", join.last);
  field("recipe", join.recipe);
}

static void each_field(Is<Failure> auto& failure, const auto& field) {
  field("host", failure.host);
  field("node", failure.node);
  field("device", failure.device);
  field("rank", failure.rank);
  field("local_rank", failure.local_rank);
  field("pid", failure.pid);
  field("code", failure.status.code);
  field("signal", failure.status.signal);
  field("time", failure.time);
  field("cause", failure.cause);
  field("step", failure.step);
  field("error_file", failure.error_file);
  field("log", failure.log);
  field("last_lines", failure.last_lines);
  field("others", failure.others);
  field("followed", failure.followed);
  field("hang", failure.hang);
  field("hang_lines", failure.hang_lines);
}

static void each_field(Is<Report> auto& report, const auto& field) {
  field("agent", report.agent);
  field("round", report.round);
  field("outcome", report.outcome);
  field("signal", report.signal);
  field("status", report.status);
  field("reason", report.reason);
  field("failure", report.failure);
}

static void each_field(Is<LostReplica> auto& lost, const auto& field) {
  field("round", lost.round);
  field("number", lost.number);
  field("failure", lost.failure);
}

static void each_field(Is<Departure> auto& departure, const auto& field) {
  field("agent", departure.agent);
  field("signal", departure.signal);
  field("status", departure.status);
}

static void each_field(Is<Message> auto& message, const auto& field) {
  field.if_any("join", message.join);
  field.if_any("report", message.report);
  field.if_any("lost", message.lost);
  field.if_any("leaves", message.leaves);
  field.if_any("heard", message.heard);
}

static void each_field(Is<AgentHeartbeat> auto& beat, const auto& field) {
  field("count", beat.count);
  field("silence", beat.silence);
}

static void each_field(Is<LeaderHeartbeat> auto& leader_heartbeat, const auto& field) {
  field("count", leader_heartbeat.count);
  field("version", leader_heartbeat.version);
  field("silence", leader_heartbeat.silence);
}

static void each_field(Is<JobState> auto& state, const auto& field) {
  field("phase", state.phase);
  field("generation", state.generation);
  field("round", state.round);
  field("nodes", state.nodes);
  field("verdicts", state.verdicts);
  field("restart", state.restart);
  field("store_host", state.store_host);
  field("store_port", state.store_port);
  field("plan", state.plan);
  field("one_host", state.one_host);
  field("reason", state.reason);
  field("failed", state.failed);
  field("handed_over", state.handed_over);
  field("candidates", state.candidates);
  field("replicas", state.replicas);
  field("lost", state.lost);
}

static void each_field(Is<Assignment> auto& place, const auto& field) {
  field("round", place.round);
  field("rank", place.rank);
  field("refused", place.refused);
  field("given_up", place.given_up);
}

static void each_field(Is<Verdict> auto& verdict, const auto& field) {
  field("round", verdict.round);
  field("again", verdict.again);
  field("code", verdict.code);
  field("text", verdict.text);
  field("failure", verdict.failure);
}

namespace {

using RecordJson = nlohmann::json;
using std::chrono::milliseconds;

// The numbers of a record in a line, in the order of its fields; times are milliseconds.
struct NumberWriter {
  std::string& line;

  void operator()(const char*, std::int64_t number) const {
    line += (line.empty() ? "" : " ") + std::to_string(number);
  }
  void operator()(const char* name, milliseconds time) const { (*this)(name, time.count()); }
};

// Numbers that are missing are 0.
struct NumberReader {
  std::istringstream& line;

  void operator()(const char*, std::int64_t& number) const {
    if (!(line >> number)) number = 0;
  }
  void operator()(const char* name, milliseconds& time) const {
    std::int64_t number = 0;
    (*this)(name, number);
    time = milliseconds(number);
  }
};

template <class Record>
constexpr bool kIsNumbers = Is<Record, AgentHeartbeat> || Is<Record, LeaderHeartbeat>;

// A worker's last lines may have bytes that are not UTF-8.
std::string line(const RecordJson& value) { return core::json_text(value); }

}  // namespace

std::string proof_of(const std::string& role, const std::string& job, const std::string& token) {
  return core::Sha256().update(line(RecordJson{"scaletrain", role, job, token})).hex();
}

template <class Record>
std::string to_line(const Record& record) {
  if constexpr (kIsNumbers<Record>) {
    std::string numbers;
    each_field(record, NumberWriter{numbers});
    return numbers;
  } else {
    return line(json_of<RecordJson>(record));
  }
}

template <class Record>
Record parse(const std::string& text) {
  if constexpr (kIsNumbers<Record>) {
    Record record;
    std::istringstream numbers(text);
    each_field(record, NumberReader{numbers});
    return record;
  } else {
    try {
      return record_of<Record>(RecordJson::parse(text));
    } catch (const RecordJson::exception&) {
      throw core::InternalError(
          "the launchers' store",
          "has an invalid record of a launcher: " + core::printable(text.substr(0, 200)),
          "give every node the same version of scaletrain");
    }
  }
}

template std::string to_line(const Hello&);
template std::string to_line(const Candidate&);
template std::string to_line(const Message&);
template std::string to_line(const AgentHeartbeat&);
template std::string to_line(const LeaderHeartbeat&);
template std::string to_line(const JobState&);
template std::string to_line(const Assignment&);
template std::string to_line(const Verdict&);
template Hello parse(const std::string&);
template Candidate parse(const std::string&);
template Message parse(const std::string&);
template AgentHeartbeat parse(const std::string&);
template LeaderHeartbeat parse(const std::string&);
template JobState parse(const std::string&);
template Assignment parse(const std::string&);
template Verdict parse(const std::string&);

}  // namespace scaletrain::launcher
