#include "lib/track/wandb_file.h"

#include <doctest/doctest.h>

// The expected bytes are those of Python's zlib.crc32 and of wandb 0.31.0's message classes.

namespace scaletrain::track {

using std::string_literals::operator""s;

TEST_CASE("a file begins with its magic number and version") {
  CHECK(wandb_file_header() == ":W&B\xe1\xbe\0"s);
}

TEST_CASE("a record that fits into its block is one fragment") {
  CHECK(wandb_frame("abc", 7) == "\xa9\x20\x9d\x53\x03\0\x01"s + "abc");
}

TEST_CASE("a record that crosses blocks is divided, each fragment with a checksum of its own") {
  const std::string two = wandb_frame(std::string(40000, 'x'), 7);
  CHECK(two == "\x41\x1e\xa8\x28\xf2\x7f\x02"s + std::string(32754, 'x') +
                   "\xd7\xaa\x08\xd7\x4e\x1c\x04"s + std::string(7246, 'x'));
  const std::string three = wandb_frame(std::string(40000, 'x'), 32760);
  CHECK(three == "\x73\x89\x31\x2d\x01\0\x02"s + "x" + "\x90\x7d\xde\x76\xf9\x7f\x03"s +
                     std::string(32761, 'x') + "\x09\xc5\xe8\xa2\x46\x1c\x04"s +
                     std::string(7238, 'x'));
}

TEST_CASE("the end of a block that holds no fragment is filled with zeros") {
  CHECK(wandb_frame("abc", 32765) == "\0\0\0\xa9\x20\x9d\x53\x03\0\x01"s + "abc");
  CHECK(wandb_frame("abc", 32761) == "\xa1\x8e\x0c\x3c\0\0\x02\x9b\xd0\x43\x64\x03\0\x04"s + "abc");
}

TEST_CASE("records are encoded as wandb_internal.proto says") {
  CHECK(wandb_header_record(1) ==
        "\x08\x01\xaa\x01\x16\x0a\x14\x0a\x0a"s + "scaletrain" + "\x12\x06"s + "0.12.0");
  CHECK(wandb_history_record(3, 300, {{"lr", "0.5"}}) == "\x08\x03\x12\x11\x0a\x0a\x0a\x02"s +
                                                             "lr" + "\x82\x01\x03"s + "0.5" +
                                                             "\x12\x03\x08\xac\x02"s);
  CHECK(wandb_summary_record(4, {{"lr", "0.5"}}) ==
        "\x08\x04\x1a\x0c\x0a\x0a\x0a\x02"s + "lr" + "\x82\x01\x03"s + "0.5");
  CHECK(wandb_exit_record(5, 1, 12) == "\x08\x05\x92\x01\x04\x08\x01\x10\x0c"s);
  CHECK(wandb_footer_record(6) == "\x08\x06\xb2\x01\0"s);
}

TEST_CASE("a run has its configuration, and a resumed one the step where it begins") {
  WandbRun run{.id = "ab", .name = "n", .config = {{"k", "1"}}, .start_time = 100.5};
  const std::string fields = "\x0a\x02"s + "ab" + "\x1a\x0a"s + "scaletrain" +
                             "\x22\x09\x0a\x07\x0a\x01k\x82\x01\x01"s + "1" + "\x42\x01n"s;
  const std::string time = "\x8a\x01\x08\x08\x64\x10\x80\xca\xb5\xee\x01"s;
  CHECK(wandb_run_record(2, run) == "\x08\x02\x8a\x01\x29"s + fields + time);
  run.starting_step = 7;
  run.is_resumed = true;
  CHECK(wandb_run_record(2, run) ==
        "\x08\x02\x8a\x01\x2e"s + fields + "\x70\x07"s + time + "\x90\x01\x01"s);
}

}  // namespace scaletrain::track
