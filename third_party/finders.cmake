# What the libraries need, by a build of ours and by who builds against an installed one
# (scripts/cmake/scaletrain-config.cmake.in): third_party::NAME, one pinned finder per dependency.

# Fails with the script that installs what `variable` was to find. The next configuration looks again.
function(_scaletrain_require variable wanted name)
  if(NOT ${variable})
    set(flag "")
    if(name STREQUAL "doctest")
      set(flag " --unit")
    endif()
    message(FATAL_ERROR "third_party::${name}: ${wanted} was not found.\n"
                        "Run scripts/setup.sh${flag}, which installs it, then configure again.")
  endif()
endfunction()

# third_party::NAME from the system: the folders of its HEADERS, and its LIBRARIES. Fails if one of
# them is missing.
function(scaletrain_find name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES" ${ARGN})
  add_library(third_party_${name} INTERFACE)
  add_library(third_party::${name} ALIAS third_party_${name})
  foreach(header IN LISTS ARG_HEADERS)
    string(MAKE_C_IDENTIFIER "SCALETRAIN_HEADER_${header}" folder)
    find_path(${folder} "${header}")
    _scaletrain_require(${folder} "${header}" "${name}")
    target_include_directories(third_party_${name} SYSTEM INTERFACE "${${folder}}")
  endforeach()
  foreach(library IN LISTS ARG_LIBRARIES)
    string(MAKE_C_IDENTIFIER "SCALETRAIN_LIBRARY_${library}" file)
    find_library(${file} NAMES "${library}")
    _scaletrain_require(${file} "${library}" "${name}")
    target_link_libraries(third_party_${name} INTERFACE "${${file}}")
  endforeach()
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/torch/torch.cmake")

# CLI11 2.1.2, Debian libcli11-dev, BSD-3-Clause. Why: the command line.
scaletrain_find(cli11 HEADERS CLI/CLI.hpp)

# nlohmann/json 3.11.2, Debian nlohmann-json3-dev, MIT. Why: recipes, manifests, metrics.
scaletrain_find(json HEADERS nlohmann/json.hpp)

# libarchive 3.6.2, Debian libarchive-dev, BSD-2-Clause. Why: decompresses shards, reads archives to
# import, and is the reader that our tar reader is checked against.
scaletrain_find(archive HEADERS archive.h LIBRARIES archive)

# libjpeg-turbo 2.1.5, Debian libjpeg62-turbo-dev and libturbojpeg0-dev, IJG and BSD-3-Clause. Why:
# libjpeg's interface decodes a part of a JPEG, TurboJPEG's encodes in two lines.
scaletrain_find(jpeg HEADERS jpeglib.h turbojpeg.h LIBRARIES jpeg turbojpeg)

# libpng 1.6.39, Debian libpng-dev, libpng licence. Why: PNG decoding.
scaletrain_find(png HEADERS png.h LIBRARIES png)

# libdeflate 1.14, Debian libdeflate-dev, MIT. Why: inflates PNGs twice as fast as zlib; gzip's
# CRC-32.
scaletrain_find(deflate HEADERS libdeflate.h LIBRARIES deflate)

# libwebp 1.2.4, Debian libwebp-dev (deb12u1 has the fix of CVE-2023-4863), BSD-3-Clause. Why: WebP
# decoding.
scaletrain_find(webp HEADERS webp/decode.h LIBRARIES webp)

# OpenSSL 3.0 libcrypto, Debian libssl-dev, Apache-2.0; linked statically. Why: SHA-256. The
# low-level functions pull in a few kilobytes, where the shared library would add megabytes and
# milliseconds to the start of the launcher.
scaletrain_find(crypto HEADERS openssl/sha.h LIBRARIES libcrypto.a)
# Its symbols stay inside: libcurl brings the shared libcrypto into the same process.
target_link_options(third_party_crypto INTERFACE "LINKER:--exclude-libs,libcrypto.a")

# xxHash 0.8.1, Debian libxxhash-dev, BSD-2-Clause; used inline (XXH_INLINE_ALL). Why: order digests.
scaletrain_find(xxhash HEADERS xxhash.h)

# libcurl 7.88.1, Debian libcurl4-openssl-dev, curl licence (MIT-like). Why: HTTP for object stores.
scaletrain_find(curl HEADERS curl/curl.h LIBRARIES curl)

# SQLite 3.40.1, Debian libsqlite3-dev, public domain. Why: scaletrain-export writes trackio's files.
scaletrain_find(sqlite HEADERS sqlite3.h LIBRARIES sqlite3)

if(SCALETRAIN_WITH_TORCH)
  # Gloo, Debian libgloo-dev 0.0~git20220518, BSD-3-Clause. Why: c10d's ProcessGroupGloo.hpp includes
  # its headers, which the wheel does not carry; the code is inside libtorch_cpu.
  scaletrain_find(gloo HEADERS gloo/common/logging.h)
endif()

# PCRE2 10.42, Debian libpcre2-dev, BSD-3-Clause. Why: the expressions by which tokenizers cut text,
# which need Unicode's classes.
scaletrain_find(pcre2 HEADERS pcre2.h LIBRARIES pcre2-8)

# utf8proc 2.8.0, Debian libutf8proc-dev, MIT. Why: the normal forms that tokenizers ask for.
scaletrain_find(utf8proc HEADERS utf8proc.h LIBRARIES utf8proc)
