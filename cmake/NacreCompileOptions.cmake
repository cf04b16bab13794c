# Flags of everything in this tree. Applications that add_subdirectory() us keep their own.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Line tables in release builds are for perf and for readable sanitizer and crash reports.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(NACRE_CCACHE ccache)
  if(NACRE_CCACHE)
    # Without this it does not cache what is compiled with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${NACRE_CCACHE})
  endif()
endif()

# Who builds this as a part of something else, as pip does, may have a compiler that warns of more.
add_compile_options(
  -Wall -Wextra -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror> -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # The beta part of the analysis checks the order in which mutexes are taken.
  add_compile_options(-Wthread-safety -Wthread-safety-beta)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports `"literal" + std::string` (GCC bug 105651), in one of these ways.
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()

# The SIMD paths use AVX2 where the target has it and scalar code elsewhere.
set(nacre_march "${NACRE_MARCH}")
if(NOT nacre_march AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(nacre_march x86-64-v3)
endif()
if(nacre_march)
  add_compile_options(-march=${nacre_march})
endif()

if(NACRE_SANITIZE)
  add_compile_options(-fsanitize=${NACRE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${NACRE_SANITIZE})
  if(NACRE_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # g++ warns of each atomic_thread_fence, which its TSan does not model.
    add_compile_options(-Wno-tsan)
  endif()
endif()
