# Turns the build into a check: each source is parsed once by Clang, with -Wthread-safety, and by
# clang-tidy; nothing is generated, archived or linked. Ninja then redoes only what changed.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
  message(FATAL_ERROR "NACRE_LINT needs CMAKE_CXX_COMPILER=clang++")
endif()
find_program(NACRE_CLANG_TIDY clang-tidy REQUIRED)
set(CMAKE_CXX_CLANG_TIDY ${NACRE_CLANG_TIDY} --quiet)
unset(CMAKE_CXX_COMPILER_LAUNCHER)
# Each header is to include what it needs itself.
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
set(CMAKE_CXX_COMPILE_OBJECT
  "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>"
  "${CMAKE_COMMAND} -E touch <OBJECT>")
set(CMAKE_CXX_ARCHIVE_CREATE "${CMAKE_COMMAND} -E touch <TARGET>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
set(CMAKE_CXX_CREATE_SHARED_MODULE "${CMAKE_COMMAND} -E touch <TARGET>")
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_COMMAND} -E touch <TARGET>")
set(CMAKE_CXX_CREATE_SHARED_LIBRARY "${CMAKE_COMMAND} -E touch <TARGET>")
