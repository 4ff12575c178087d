#include "lib/track/record.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/track/records.h"

namespace scaletrain::track {

TEST_CASE("a record has the numbers of its line with their digits, and NaN for null") {
  const Record record = record_of(
      R"({"event":"train","attempt":2,"step":7,"loss":0.1,"lr":null,"model":{"load":0.5},)"
      R"("order_digest":"ff","time":12.5,"format":1})");
  CHECK(record.event == "train");
  CHECK(record.split.empty());
  CHECK(record.attempt == 2);
  CHECK(record.step == 7);
  CHECK(record.time == 12.5);
  REQUIRE(record.fields.size() == 6);
  CHECK(record.fields[2].name == "loss");
  CHECK(record.fields[2].text == "0.1");
  CHECK(record.fields[3].name == "lr");
  CHECK(std::isnan(record.fields[3].value));
  CHECK(record.fields[3].text == "nan");
  CHECK(record.fields[4].name == "model.load");
  CHECK(record.fields[4].value == 0.5);
  CHECK(record.fields[5].name == "time");
}

TEST_CASE("a line without an event or a step is no record") {
  const auto is_record = [](const char* line) {
    return parse_record(nlohmann::ordered_json::parse(line)).has_value();
  };
  CHECK(is_record(R"({"event":"eval","split":"val","step":3})"));
  CHECK_FALSE(is_record(R"({"event":"eval","split":"val"})"));
  CHECK_FALSE(is_record(R"({"step":3})"));
  CHECK_FALSE(is_record("{}"));
}

}  // namespace scaletrain::track
