#include "lib/track/events/event.h"

#include <doctest/doctest.h>

#include <string>

namespace scaletrain::track {
namespace {

// "NAME: TEXT" of the events of a line.
std::vector<std::string> texts_of(const std::string& line) {
  std::vector<std::string> texts;
  for (const Event& event : parse_events(nlohmann::ordered_json::parse(line), "digits")) {
    texts.push_back(event.name + ": " + event.payload.at("text").get<std::string>());
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("lines of the journal become events with a sentence") {
  CHECK(texts_of(R"({"event":"attempt_started","attempt":0,"ranks":2,"nodes":1,"restart":0})") ==
        Texts{"start: digits: started with 2 ranks"});
  CHECK(texts_of(R"({"event":"attempt_started","attempt":1,"ranks":1,"restart":0,"step":40})") ==
        Texts{"start: digits: started with 1 rank, resumed from step 40"});
  CHECK(texts_of(R"({"event":"checkpoint_saved","attempt":0,"step":40})") ==
        Texts{"checkpoint: digits: checkpoint saved at step 40"});
  CHECK(texts_of(R"({"event":"attempt_failed","step":12,"rank":1,"cause":"no\nmemory"})") ==
        Texts{"failure: digits: failed at step 12: no"});
  CHECK(texts_of(R"({"event":"restarting","text":"starting again: restart 1 of 3"})") ==
        Texts{"restart: digits: starting again: restart 1 of 3"});
  CHECK(texts_of(R"({"event":"finished","step":105})") ==
        Texts{"end: digits: finished at step 105"});
  CHECK(texts_of(R"({"event":"stopped","signal":"SIGTERM"})") ==
        Texts{"end: digits: was stopped by SIGTERM"});
}

TEST_CASE("a failure after which the job does not start again is its end too") {
  CHECK(texts_of(R"({"event":"attempt_failed","step":12,"cause":"c","final":true})") ==
        Texts{"failure: digits: failed at step 12: c", "end: digits: failed at step 12"});
}

TEST_CASE("a restart is announced once, and other lines of the journal are no events") {
  CHECK(texts_of(R"({"event":"attempt_started","attempt":1,"restart":1})").empty());
  CHECK(texts_of(R"({"event":"step_skipped","step":3})").empty());
  CHECK(texts_of("{}").empty());
}

TEST_CASE("a payload has name, run, sentence and the journal's fields, without secrets of URLs") {
  const std::vector<Event> events = parse_events(
      nlohmann::ordered_json::parse(
          R"({"event":"attempt_failed","attempt":0,"rank":1,"cause":"s3://me:word@b/k","time":5})"),
      "digits");
  REQUIRE(events.size() == 1);
  CHECK(events[0].payload.at("event") == "failure");
  CHECK(events[0].payload.at("run") == "digits");
  CHECK(events[0].payload.at("rank") == 1);
  CHECK(events[0].payload.at("cause") == "s3://***@b/k");
  CHECK(events[0].payload.at("time") == 5);
  CHECK(parse_events(nlohmann::ordered_json::parse(R"({"event":"finished"})"), "r")[0].payload.at(
            "result") == "finished");
}

}  // namespace scaletrain::track
