#include "lib/track/wandb_file.h"

#include <libdeflate.h>

#include <cmath>

#include "lib/track/protobuf.h"

namespace scaletrain::track {
namespace {

constexpr std::size_t kLogBlock = 32768;
constexpr std::size_t kFragmentHeader = 7;
constexpr std::uint16_t kMagic = 0xBEE1;
constexpr const char* kProject = "scaletrain";
constexpr const char* kOldestReader = "0.12.0";

enum class Fragment : unsigned char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

Fragment fragment_type(bool is_first, bool is_last) {
  if (is_first) return is_last ? Fragment::kFull : Fragment::kFirst;
  return is_last ? Fragment::kLast : Fragment::kMiddle;
}

std::string fragment(Fragment type, std::string_view data) {
  const std::string checked = static_cast<char>(type) + std::string(data);
  return little_endian(libdeflate_crc32(0, checked.data(), checked.size())) +
         little_endian(static_cast<std::uint16_t>(data.size())) + checked;
}

std::string numbered(std::int64_t number, std::uint64_t field, const std::string& what) {
  return number_field(1, static_cast<std::uint64_t>(number)) + bytes_field(field, what);
}

// Fields `field` of key and value, as in config, history and summary.
std::string items(std::uint64_t field, const JsonByKey& values) {
  std::string fields;
  for (const auto& [key, json] : values) {
    fields += bytes_field(field, bytes_field(1, key) + bytes_field(16, json));
  }
  return fields;
}

// A Timestamp message.
std::string timestamp(double time) {
  const double seconds = std::floor(time);
  return number_field(1, static_cast<std::uint64_t>(seconds)) +
         number_field(2, static_cast<std::uint64_t>((time - seconds) * 1e9));
}

}  // namespace

std::string wandb_file_header() { return ":W&B" + little_endian(kMagic) + '\0'; }

std::string wandb_frame(std::string_view record, std::int64_t offset) {
  std::string frame;
  bool is_first = true;
  do {
    const std::size_t left =
        kLogBlock - (static_cast<std::size_t>(offset) + frame.size()) % kLogBlock;
    if (left < kFragmentHeader) {
      frame.append(left, '\0');
      continue;
    }
    const std::string_view data = record.substr(0, left - kFragmentHeader);
    record.remove_prefix(data.size());
    frame += fragment(fragment_type(is_first, record.empty()), data);
    is_first = false;
  } while (!record.empty() || is_first);
  return frame;
}

std::string wandb_header_record(std::int64_t number) {
  const std::string versions = bytes_field(1, "scaletrain") + bytes_field(2, kOldestReader);
  return numbered(number, 21, bytes_field(1, versions));
}

std::string wandb_run_record(std::int64_t number, const WandbRun& run) {
  std::string fields = bytes_field(1, run.id) + bytes_field(3, kProject) +
                       bytes_field(4, items(1, run.config)) + bytes_field(8, run.name);
  if (run.is_resumed) {
    fields += number_field(14, static_cast<std::uint64_t>(run.starting_step));
  }
  fields += bytes_field(17, timestamp(run.start_time));
  if (run.is_resumed) fields += number_field(18, 1);
  return numbered(number, 17, fields);
}

std::string wandb_history_record(std::int64_t number, std::int64_t step, const JsonByKey& row) {
  const std::string step_message = number_field(1, static_cast<std::uint64_t>(step));
  return numbered(number, 2, items(1, row) + bytes_field(2, step_message));
}

std::string wandb_summary_record(std::int64_t number, const JsonByKey& values) {
  return numbered(number, 3, items(1, values));
}

std::string wandb_exit_record(std::int64_t number, int exit_code, std::int64_t runtime_s) {
  return numbered(number, 18,
                  number_field(1, static_cast<std::uint64_t>(exit_code)) +
                      number_field(2, static_cast<std::uint64_t>(runtime_s)));
}

std::string wandb_footer_record(std::int64_t number) { return numbered(number, 22, ""); }

}  // namespace scaletrain::track
