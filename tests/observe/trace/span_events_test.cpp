#include "lib/observe/trace/span_events.h"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace scaletrain::observe {
namespace {

using core::TraceSpan;
using Kind = TraceSpan::Kind;

constexpr std::int64_t kBaseOfSpans = 1'790'857'026'000'000'000;

nlohmann::json events_of(const std::vector<TraceSpan>& spans) {
  nlohmann::json events = nlohmann::json::array();
  for (const std::string& text : span_events(spans, kBaseOfSpans, 77)) {
    events.push_back(nlohmann::json::parse(text));
  }
  return events;
}

TEST_CASE("a span is an event of its process with microseconds since the base of the trace") {
  const TraceSpan span{.name = "checkpoint \"write\"",
                       .begin_ns = kBaseOfSpans + 5'065'248'666'828'884,
                       .end_ns = kBaseOfSpans + 5'065'248'666'888'197,
                       .thread = 561};
  CHECK(span_events({span}, kBaseOfSpans, 77).at(0).find("\"ts\": 5065248666828.884,") !=
        std::string::npos);
  const nlohmann::json event = events_of({span}).at(0);
  CHECK(event["name"] == "checkpoint \"write\"");
  CHECK(event["ph"] == "X");
  CHECK(event["cat"] == "user_annotation");
  CHECK(event["pid"] == 77);
  CHECK(event["tid"] == 561);
  CHECK(event["dur"] == 59.313);
  CHECK(event["args"]["scaletrain"] == "thread");
}

TEST_CASE(
    "steps, rows and collectives have named tracks, a further one where collectives overlap") {
  const auto at = [](const char* name, Kind kind, std::int64_t begin, std::int64_t end) {
    return TraceSpan{.name = name,
                     .kind = kind,
                     .begin_ns = kBaseOfSpans + begin,
                     .end_ns = kBaseOfSpans + end,
                     .thread = 561,
                     .group = kind == Kind::kCollective ? "world" : "",
                     .bytes = kind == Kind::kCollective ? 4096 : 0};
  };
  const nlohmann::json events = events_of(
      {at("third", Kind::kCollective, 4000, 6000), at("forward", Kind::kRow, 0, 5000),
       at("ProfilerStep#3", Kind::kStep, 0, 9000), at("first", Kind::kCollective, 1000, 3000),
       at("second", Kind::kCollective, 2000, 5000)});
  std::map<std::string, std::int64_t> tracks;
  std::map<std::int64_t, std::string> names;
  for (const nlohmann::json& event : events) {
    if (event["ph"] == "M") {
      names[event["tid"]] = event["args"]["name"];
    } else {
      tracks[event["name"]] = event["tid"];
    }
  }
  CHECK(tracks["ProfilerStep#3"] == kStepTrack);
  CHECK(tracks["forward"] == kRowTrack);
  CHECK(tracks["first"] == kFirstCollectiveTrack);
  CHECK(tracks["second"] == kFirstCollectiveTrack + 1);
  CHECK(tracks["third"] == kFirstCollectiveTrack);  // the first one is over
  CHECK(names[kStepTrack] == "steps");
  CHECK(names[kRowTrack] == "time ledger");
  CHECK(names[kFirstCollectiveTrack + 1] == "collectives");
  for (const nlohmann::json& event : events) {
    if (event["name"] != "first") continue;
    CHECK(event["args"]["group"] == "world");
    CHECK(event["args"]["bytes"] == 4096);
  }
}

}  // namespace
}  // namespace scaletrain::observe
