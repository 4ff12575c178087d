#include "launcher/commands/queue/queued_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using JobJson = nlohmann::ordered_json;

constexpr std::int64_t kMaxJobBytes = 1 << 20;
constexpr std::array kStateNames{"waiting", "running", "done", "failed"};

QueuedJob::State parse_state(const std::string& name) {
  const auto found = std::find(kStateNames.begin(), kStateNames.end(), name);
  if (found == kStateNames.end()) throw std::out_of_range(name);
  return static_cast<QueuedJob::State>(found - kStateNames.begin());
}

const QueuedJob* job_with_output(const std::vector<QueuedJob>& jobs, const std::string& output) {
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const QueuedJob& job) { return job.output == output; });
  return found == jobs.end() ? nullptr : &*found;
}

}  // namespace

const char* name_of(QueuedJob::State state) {
  return kStateNames.at(static_cast<std::size_t>(state));
}

std::string to_json(const QueuedJob& job) {
  auto values = JobJson::array();
  for (const auto& [key, value] : job.values) values.push_back({key, value});
  const JobJson json{{"number", job.number},
                     {"name", job.name},
                     {"recipe", job.recipe},
                     {"set", job.set},
                     {"values", values},
                     {"output", job.output},
                     {"state", name_of(job.state)},
                     {"starts", job.starts},
                     {"exit_code", job.exit_code},
                     {"devices", job.devices}};
  return core::json_text(json, 2) + "\n";
}

QueuedJob parse_job(const std::string& text, const std::string& file) {
  try {
    const JobJson json = JobJson::parse(text);
    QueuedJob job{.number = json.at("number").get<int>(),
                  .name = json.at("name").get<std::string>(),
                  .recipe = json.at("recipe").get<std::string>(),
                  .set = json.at("set").get<std::vector<std::string>>(),
                  .output = json.at("output").get<std::string>(),
                  .state = parse_state(json.at("state").get<std::string>()),
                  .starts = json.at("starts").get<int>(),
                  .exit_code = json.at("exit_code").get<int>(),
                  .devices = json.at("devices").get<std::string>()};
    for (const JobJson& pair : json.at("values")) {
      job.values.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
    }
    return job;
  } catch (const std::exception& error) {
    throw core::DataError(file, fmt::format("is not a job of a queue: {}", error.what()),
                          "remove the file; the run's folder stays");
  }
}

std::vector<QueuedJob> load_jobs(const fs::path& folder) {
  std::vector<QueuedJob> jobs;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "jobs", none)) {
    if (entry.path().extension() != ".json") continue;
    jobs.push_back(parse_job(core::read_file(entry.path(), kMaxJobBytes, core::ExitCode::kData),
                             entry.path().string()));
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const QueuedJob& a, const QueuedJob& b) { return a.number < b.number; });
  return jobs;
}

void save_job(const fs::path& folder, const QueuedJob& job) {
  core::Disk& disk = core::system_disk();
  disk.make_folders(folder / "jobs");
  core::write_durably(disk, folder / "jobs" / fmt::format("{:04}.json", job.number), to_json(job));
}

void add_jobs(std::vector<QueuedJob>& jobs, std::vector<QueuedJob> more) {
  const std::size_t before = jobs.size();
  for (QueuedJob& job : more) {
    const QueuedJob* const known = job_with_output(jobs, job.output);
    if (known == nullptr) {
      job.number = jobs.empty() ? 1 : jobs.back().number + 1;
      jobs.push_back(std::move(job));
      continue;
    }
    const bool is_new = static_cast<std::size_t>(known - jobs.data()) >= before;
    if (is_new || known->recipe != job.recipe || known->set != job.set) {
      throw core::UsageError(
          job.recipe,
          fmt::format("has the same output folder as job {}: {}", known->number, job.output),
          "each run needs its own folder: give the recipe another name or output");
    }
  }
}

}  // namespace scaletrain::launcher
