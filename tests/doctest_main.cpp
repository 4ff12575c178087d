// The main function of every unit test program. A run of which nothing is left but test cases that
// are marked to be skipped lists them and ends with kSkipped; one that no test case matches fails.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

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

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int status = context.run();
  if (context.shouldExit() || status != 0 || matching > 0) return status;
  std::vector<const char*> arguments(argv, argv + argc);
  arguments.insert(arguments.end(), {"--no-skip", "--list-test-cases"});
  doctest::Context(static_cast<int>(arguments.size()), arguments.data()).run();
  return matching > 0 ? kSkipped : 1;
}
