// The .wandb file of an offline run of Weights & Biases, as `wandb sync` reads it.
//
// The file has LevelDB's log format with a header of its own and CRC-32 in place of CRC-32C; a log
// record is one Record message of wandb_internal.proto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace scaletrain::track {

// First bytes of a file.
std::string wandb_file_header();

// Frames a record that is written at byte `offset` of the file: a record that crosses the end of a
// block of 32 KiB is divided into fragments.
std::string wandb_frame(std::string_view record, std::int64_t offset);

using JsonByKey = std::map<std::string, std::string>;  // JSON text of each value

struct WandbRun {
  std::string id;
  std::string name;
  JsonByKey config{};
  double start_time = 0;           // Unix seconds
  std::int64_t starting_step = 0;  // of a resumed run
  bool is_resumed = false;
};

// Record messages. `number` counts the records of a file, from 1.
std::string wandb_header_record(std::int64_t number);
std::string wandb_run_record(std::int64_t number, const WandbRun& run);
std::string wandb_history_record(std::int64_t number, std::int64_t step, const JsonByKey& row);
std::string wandb_summary_record(std::int64_t number, const JsonByKey& values);
std::string wandb_exit_record(std::int64_t number, int exit_code, std::int64_t runtime_s);
std::string wandb_footer_record(std::int64_t number);

}  // namespace scaletrain::track
