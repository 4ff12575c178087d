#include "lib/track/tensorboard_events.h"

#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/track/event_messages.h"

namespace scaletrain::track {

TEST_CASE("a TFRecord has its length and two masked checksums") {
  const std::string record = tf_record("brain");
  CHECK(record.size() == 8 + 4 + 5 + 4);
  CHECK(event_messages(record) == std::vector<std::string>{"brain"});
}

TEST_CASE("events are encoded as event.proto says") {
  using std::string_literals::operator""s;
  const std::string time = "\x09\0\0\0\0\0\0\xf8\x3f"s;  // 1.5
  CHECK(version_event(1.5) == time + "\x10\0\x1a\x0d"s + "brain.Event:2");
  CHECK(restart_event(1.5, 300) == time + "\x10\xac\x02\x3a\x02\x08\x01"s);
  const std::array scalars{std::pair<std::string, double>{"lr", 0.5}};
  CHECK(scalars_event(1.5, 3, scalars) ==
        time + "\x10\x03\x2a\x0b\x0a\x09\x0a\x02lr\x15\0\0\0\x3f"s);
  const std::string text = text_event(1.5, "a", "b");
  CHECK(text == time + "\x10\0\x2a\x29\x0a\x27\x0a\x0e"s + "a/text_summary" +
                    "\x42\x0b\x08\x07\x12\x04\x12\x02\x08\x01\x42\x01"s + "b" +
                    "\x4a\x08\x0a\x06\x0a\x04"s + "text");
}

TEST_CASE("an image has the size in the header of its PNG") {
  using std::string_literals::operator""s;
  const std::string png = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\1\2\0\0\0\5"s;  // 258 x 5
  const std::string event =
      image_event({.name = "train/batch", .file = "", .step = 3, .captions = {}}, png);
  const std::string image = "\x08\x05\x10\x82\x02\x18\x03\x22\x18"s + png;
  CHECK(event.ends_with("\x0a\x0btrain/batch\x22"s + static_cast<char>(image.size()) + image));
}

TEST_CASE("a histogram has the right edges of its equal buckets, and its sums") {
  using std::string_literals::operator""s;
  const Histograms histograms{
      .attempt = 0,
      .step = 1,
      .time = 1.5,
      .all = {{.name = "w", .min = 0, .max = 2, .sum = 4, .sum_squares = 6, .counts = {3, 1}},
              {.name = "empty", .counts = {}}}};
  const std::string one = "\0\0\0\0\0\0\xf0\x3f"s, two = "\0\0\0\0\0\0\0\x40"s,
                    three = "\0\0\0\0\0\0\x08\x40"s, four = "\0\0\0\0\0\0\x10\x40"s,
                    six = "\0\0\0\0\0\0\x18\x40"s, zero(8, '\0');
  const std::string message = "\x09"s + zero + "\x11" + two + "\x19" + four + "\x21" + four +
                              "\x29" + six + "\x32\x10" + one + two + "\x3a\x10" + three + one;
  const std::string event = histograms_event(histograms);
  CHECK(event.ends_with("\x0a\x01w\x2a"s + static_cast<char>(message.size()) + message));
  CHECK(event.find("empty") == std::string::npos);
}

TEST_CASE("hyperparameters have their types and values, and their run its end") {
  using std::string_literals::operator""s;
  const auto values = nlohmann::ordered_json::parse(R"({"a": "x", "b": true, "c": 1})");
  const std::string one = "\0\0\0\0\0\0\xf0\x3f"s;
  const std::string start = hparams_start_event(1.5, values);
  for (const std::string& entry : {"\x0a\x08\x0a\x01"s + "a" + "\x12\x03\x1a\x01x",
                                   "\x0a\x07\x0a\x01"s + "b" + "\x12\x02\x20\x01",
                                   "\x0a\x0e\x0a\x01"s + "c" + "\x12\x09\x11" + one}) {
    CHECK(start.find(entry) != std::string::npos);
  }
  CHECK(start.find("_hparams_/session_start_info") != std::string::npos);
  const std::string experiment = hparams_event(1.5, values);
  CHECK(experiment.find("\x0a\x01"s + "b" + "\x20\x02") != std::string::npos);  // DATA_TYPE_BOOL
  CHECK(experiment.find("Loss/val") != std::string::npos);
  CHECK(hparams_end_event(1.5, true) != hparams_end_event(1.5, false));
}

}  // namespace scaletrain::track
