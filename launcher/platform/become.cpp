#include "launcher/platform/become.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "lib/core/error.h"

namespace scaletrain::launcher {

void become(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<std::string> texts{path};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execv(path.c_str(), pointers.data());
  throw core::UsageError(path, "cannot be executed: " + core::errno_text(errno), "check the file");
}

}  // namespace scaletrain::launcher
