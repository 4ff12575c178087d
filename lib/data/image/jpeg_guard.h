// Turns errors of libjpeg, including its warnings, into a return value. It uses longjmp: no object
// with a destructor may live between run() and the library calls inside it.
#pragma once

#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h wants it

// clang-format off
#include <jpeglib.h>
// clang-format on

namespace scaletrain::data {

class JpegGuard {
 public:
  JpegGuard() {
    jpeg_std_error(&errors_);
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
  }
  JpegGuard(const JpegGuard&) = delete;
  JpegGuard& operator=(const JpegGuard&) = delete;

  jpeg_error_mgr* errors() { return &errors_; }  // for the `err` member of libjpeg's structures

  // Runs `body`, which calls the library or fail(). Returns false if that failed.
  template <class Body>
  bool run(const Body& body) {
    if (setjmp(jump_) != 0) return false;  // NOLINT(cert-err52-cpp)
    body();
    return true;
  }
  const char* message() const { return message_.data(); }  // text of the last error

  // With `tolerates`, warnings are not errors; warning() returns the first one, "" if there was
  // none.
  void tolerate(bool tolerates) {
    tolerates_ = tolerates;
    warning_.fill('\0');
  }
  bool tolerates() const { return tolerates_; }
  const char* warning() const { return warning_.data(); }

  // Reports a warning of our own.
  static void warn(j_common_ptr common, int code) {
    common->err->msg_code = code;
    on_message(common, -1);
  }

  [[noreturn]] static void fail(j_common_ptr common, int code) {
    common->err->msg_code = code;
    on_error(common);
  }

 private:
  [[noreturn]] static void on_error(j_common_ptr common) {
    // The error manager is its first member.
    auto* const guard = reinterpret_cast<JpegGuard*>(common->err);
    common->err->format_message(common, guard->message_.data());
    std::longjmp(guard->jump_, 1);
  }

  static void on_message(j_common_ptr common, int level) {
    if (level >= 0) return;
    auto* const guard = reinterpret_cast<JpegGuard*>(common->err);
    if (!guard->tolerates_) on_error(common);
    if (guard->warning_[0] == '\0') common->err->format_message(common, guard->warning_.data());
  }

  jpeg_error_mgr errors_ = {};
  std::jmp_buf jump_ = {};
  std::array<char, JMSG_LENGTH_MAX> message_ = {}, warning_ = {};
  bool tolerates_ = false;
};

}  // namespace scaletrain::data
