// What turns a unit-test program into one that scripts/mutate.sh asks for runs: it has loaded its
// libraries once, and each run is a fork of it. Without arguments of its own kind it stays as it
// was.
//
// A request is a line on the standard input: MUTANT LIMIT_MS FOLDER LOG FILTER, with LOG "-" for
// none; the answer is a line: the exit status, 128 + the signal, or -1 where the time was up.
#pragma once

#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "switch.h"

namespace scaletrain_mutants {

// Writes "case NAME" and "end FAILED SECONDS" around what each test case reaches.
class Recorder : public doctest::IReporter {
 public:
  explicit Recorder(const doctest::ContextOptions& /*options*/) {}

  void test_case_start(const doctest::TestCaseData& data) override {
    for (auto& one : reached) one = false;
    log_line(std::string("case ") + data.m_name);
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    log_line("end " + std::to_string(stats.failure_flags) + " " + std::to_string(stats.seconds));
  }

  void report_query(const doctest::QueryData& /*query*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}
};

DOCTEST_REGISTER_LISTENER("recorder", 1, Recorder);

inline int wait_for(pid_t child, int limit_ms) {
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd ended{watch, POLLIN, 0};
  const bool in_time = poll(&ended, 1, limit_ms) == 1;
  kill(-child, SIGKILL);  // with what it has started
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(watch);
  if (!in_time) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Runs before anything else of the program; returns in the child, which goes on to main().
[[gnu::constructor(101)]] inline void serve(int argc, char** argv, char** /*environment*/) {
  static char filter[1 << 16];
  if (argc < 2 || std::strcmp(argv[argc - 1], "serve") != 0) return;
  char mutant[16], folder[1024], log[1024];
  int limit_ms = 0;
  while (std::scanf("%15s %d %1023s %1023s %65000[^\n]", mutant, &limit_ms, folder, log,
                    filter + std::strlen("--test-case=")) == 5) {
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int nowhere = open("/dev/null", O_RDWR);
      for (int file = 0; file <= 2; ++file) dup2(nowhere, file);
      close(nowhere);
      std::memcpy(filter, "--test-case=", std::strlen("--test-case="));
      argv[argc - 1] = filter;
      setenv("TMPDIR", folder, 1);
      setenv("SCALETRAIN_MUTANT", mutant, 1);
      if (std::strcmp(log, "-") != 0) setenv("SCALETRAIN_MUTANTS_LOG", log, 1);
      if (chdir(folder) != 0) abort();
      return;
    }
    std::printf("%d\n", wait_for(child, limit_ms));
    std::fflush(stdout);
  }
  _exit(0);
}

}  // namespace scaletrain_mutants
