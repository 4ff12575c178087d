#include "lib/track/prometheus.h"

#include <doctest/doctest.h>

#include <array>

#include "lib/observe/devices/device_files.h"
#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {

TEST_CASE("labels are escaped") { CHECK(escape_label("a\\b\"c\nd") == "a\\\\b\\\"c\\nd"); }

TEST_CASE("the text has the newest value of each metric, with HELP and TYPE") {
  PrometheusText text("run");
  text.add(train_record(1, 2.5));
  text.add(train_record(2, 1.5));
  text.add(eval_record(2, 0.5));
  const std::string found = text.text();
  CHECK(found.find("# HELP scaletrain_loss Training loss.\n# TYPE scaletrain_loss gauge\n"
                   "scaletrain_loss{run=\"run\"} 1.5\n") != std::string::npos);
  CHECK(found.find("scaletrain_step{run=\"run\"} 2\n") != std::string::npos);
  CHECK(found.find("scaletrain_eval{run=\"run\",split=\"val\",measure=\"top1\"} 0.5\n") !=
        std::string::npos);
  CHECK(found.find("scaletrain_running{run=\"run\"} 1\n") != std::string::npos);
  CHECK(found.find("2.5") == std::string::npos);
}

TEST_CASE("a value that is not finite is NaN") {
  PrometheusText text("run");
  text.add(record_of(R"({"event":"train","attempt":0,"step":1,"loss":null,"time":1})"));
  CHECK(text.text().find("scaletrain_loss{run=\"run\"} NaN\n") != std::string::npos);
}

TEST_CASE("the textfile is in its folder, and says at the end that the run does not run") {
  const test::TemporaryFolder folder;
  const auto exporter =
      make_prometheus({.run = folder.path, .name = "run", .textfile_folder = folder.path / "t"});
  std::filesystem::create_directories(folder.path / "logs" / "attempt_0");
  observe::DeviceLog(observe::device_file(folder.path / "logs" / "attempt_0", 0))
      .append({.time = 1, .host = {.cpu = 34}});
  exporter->write(std::array{train_record(1, 2.5)});
  CHECK(folder.read("t/scaletrain_run.prom")
            .find("scaletrain_host_cpu{run=\"run\",node=\"0\"} 34\n") != std::string::npos);
  CHECK(folder.read("t/scaletrain_run.prom").find("scaletrain_running{run=\"run\"} 1\n") !=
        std::string::npos);
  exporter->finish();
  CHECK(folder.read("t/scaletrain_run.prom").find("scaletrain_running{run=\"run\"} 0\n") !=
        std::string::npos);
  CHECK(folder.read("t/scaletrain_run.prom").find("scaletrain_host") == std::string::npos);
  CHECK(exporter->socket() == -1);
}

}  // namespace scaletrain::track
