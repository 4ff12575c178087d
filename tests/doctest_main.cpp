// The main function of every unit test program. A run in which every matching test case is marked
// as skipped lists these cases and exits with kSkipped; a filter that matches no test case fails.
// The last line on stderr is the CPU time, which scripts/test_costs.py reads.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE (scripts/cmake/scaletrain_build.cmake)

unsigned matching = 0;  // test cases of the last run or list

class Counter : public doctest::IReporter {
 public:
  explicit Counter(const doctest::ContextOptions& /*options*/) {}

  void report_query(const doctest::QueryData& query) override {
    if (query.run_stats != nullptr) matching = query.run_stats->numTestCasesPassingFilters;
  }
  void test_run_end(const doctest::TestRunStats& stats) override {
    matching = stats.numTestCasesPassingFilters;
  }

  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData& /*data*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}
};

REGISTER_LISTENER("counter", 1, Counter);

// User and system time in seconds, of this process or of the children it has waited for.
double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int status = context.run();
  std::fflush(stdout);
  std::fprintf(stderr, "cpu_s: %.3f\n", cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN));
  if (context.shouldExit() || status != 0 || matching > 0) return status;
  std::vector<const char*> arguments(argv, argv + argc);
  arguments.insert(arguments.end(), {"--no-skip", "--list-test-cases"});
  doctest::Context(static_cast<int>(arguments.size()), arguments.data()).run();
  return matching > 0 ? kSkipped : 1;
}
